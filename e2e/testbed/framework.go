// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// CreateFramework creates a Framework in a namespace, and returns what the API server stored.
func (c *Cluster) CreateFramework(t testing.TB, namespace string, fw *frameworkv1.Framework) *frameworkv1.Framework {
	t.Helper()
	created, err := c.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Create(t.Context(), fw, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// EndPod has a running Pod of RunForever end with an exit code. A test that ends Pods itself
// sees all that happens before, however slow the machine is.
func (c *Cluster) EndPod(t testing.TB, namespace, name string, code int) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"annotations": {%q: "0", %q: "%d"}}}`, jobs.AnnotationRunSeconds, jobs.AnnotationExitCode, code)
	if _, err := c.Kube.CoreV1().Pods(namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
