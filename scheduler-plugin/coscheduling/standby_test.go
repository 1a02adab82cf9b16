// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestSchedulerThatDoesNotLeadOnlyWatches: of two replicas one is elected. The
// other sees a gang that waits for members and one that is placed, of which both
// would have something to say, and is silent until it leads.
func TestSchedulerThatDoesNotLeadOnlyWatches(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("waits", 2), makeMembers("waits", 1),
			makeGroup("runs", 1), makeMembers("runs", 1, onNode("node-0")))...)
		lead := w.standBy()
		w.eventually("the standby has seen both gangs", func() bool {
			waits, runs := w.known("waits"), w.known("runs")
			return waits.Group != nil && len(waits.Members) == 1 && runs.Group != nil && runs.Bound.Total == 1
		})
		if n := w.patches("podgroups"); n != 0 {
			t.Errorf("the standby wrote conditions %d times", n)
		}
		if got := w.engine().reader.CountWaiting(); len(got) != 0 {
			t.Errorf("the standby counts waiting gangs: %v", got)
		}

		lead()
		w.condition("waits", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		w.condition("runs", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		if n := w.patches("podgroups"); n != 2 {
			t.Errorf("the leader wrote conditions %d times, want once for each gang", n)
		}
	})
}
