// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestPendingPods: members are told of among the Pods that wait, each once.
func TestPendingPods(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode), makePod("ordinary"),
			makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.standBy()
		w.eventually("all that wait are told of", func() bool {
			pods, _ := w.sched.SchedulingQueue.PendingPods()
			return len(pods) == 3
		})
		w.engine().gangs.SetSynced()
		w.eventually("a wake-up entry is put into the queue for the gang, and is not told of", func() bool {
			pods, _ := w.sched.SchedulingQueue.PendingPods()
			return len(w.sched.SchedulingQueue.PodsInActiveQ()) == 2 && len(pods) == 3
		})
	})
}

// TestWaitingGangsAreNotAsked: on a full cluster a gang and an ordinary Pod wait.
// What happens there is put to the Pod only, as the queue would put it to each of
// the members.
func TestWaitingGangsAreNotAsked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode), makePod("ordinary"),
			makeGroup("gang", 3), makeMembers("gang", 3))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("the ordinary Pod waits, alone", func() bool {
			waiting := w.sched.SchedulingQueue.UnschedulablePods()
			return len(waiting) == 1 && waiting[0].Name == "ordinary"
		})
	})
}
