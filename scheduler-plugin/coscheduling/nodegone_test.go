// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

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
	w.eventually("the gang has been planned in vain, and nothing happens", func() bool { return w.marked("gang") == 2 && w.quiet() })
	begun := time.Now()
	if err := w.kube.CoreV1().Nodes().Delete(t.Context(), "small-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it is placed after %v, as each gang is tried anyway after a minute", took)
	}
}
