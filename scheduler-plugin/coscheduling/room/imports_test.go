// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestRoomActsOnNothing: the package knows the scheduler's interfaces and the line, and
// nothing by which it could do something. What those import is not its business.
func TestRoomActsOnNothing(t *testing.T) {
	allowed := []string{
		"k8s.io/api/core/v1",
		"k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apimachinery/pkg/types",
		"k8s.io/component-helpers/scheduling/corev1",
		"k8s.io/kube-scheduler/framework",
		"k8s.io/kubernetes/pkg/scheduler/framework",
		"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line",
	}
	imports, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatalf("listing the imports: %v", err)
	}
	for line := range strings.Lines(string(imports)) {
		pkg := strings.TrimSpace(line)
		if strings.Contains(pkg, ".") && !slices.Contains(allowed, pkg) {
			t.Errorf("the package imports %s", pkg)
		}
	}
}
