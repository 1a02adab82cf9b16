// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CreateClass creates a PriorityClass unless there is one of its name, and waits until Pods may name the class: the API server
// learns of classes by a watch, and refuses Pods of an unknown class. The class stays when the test ends, as the next test may
// use the class, too.
func (c *Cluster) CreateClass(t testing.TB, name string, value int32) {
	t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
	if _, err := c.Kube.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	pod := MakePod("of-" + name)
	pod.Spec.PriorityClassName = name
	Eventually(t, "Pods of the class "+name+" to be let in", func(ctx context.Context) (bool, string, error) {
		_, err := c.Kube.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil, fmt.Sprint(err), nil
	})
}
