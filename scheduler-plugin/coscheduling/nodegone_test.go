// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestAGangThatSpreadsIsPlacedWhenANodeGoes: no member can be on that node, and no other may
// have two while it has none.
func TestAGangThatSpreadsIsPlacedWhenANodeGoes(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "gang"}}
	spread := func(w *schedulertesting.PodWrapper) {
		w.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, selector, nil, nil, nil, nil)
	}
	w := newWorld(t, all(makeNodes("node", 1, 2), makeNodes("small", 1, 0), makeGroup("gang", 2), makeMembers("gang", 2, spread))...)
	w.start()
	w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	if err := w.kube.CoreV1().Nodes().Delete(t.Context(), "small-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
}
