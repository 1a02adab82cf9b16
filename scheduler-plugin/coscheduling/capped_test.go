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

// TestAGroupHasNoPriorityThatItsPodsDoNotHave: whoever may create PodGroups names the
// highest class that there is. Nobody is evicted for Pods of priority 0, and the group
// is told why.
func TestAGroupHasNoPriorityThatItsPodsDoNotHave(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		elsewhere := func(w *schedulertesting.PodWrapper) { w.Namespace("elsewhere") }
		w := newWorld(t, all(makeNodes("node", 1, 2), priorityClass("system-node-critical", 2000001000, corev1.PreemptLowerPriority),
			makePod("a", elsewhere, onNode("node-0"), ofPriority(100)), makePod("b", elsewhere, onNode("node-0"), ofPriority(100)),
			makeGroup("gang", 2, ofClass("system-node-critical")), makeMembers("gang", 2, ofPriority(0)))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.eventually("the gang has been planned in vain", func() bool { return w.marked("gang") == 2 })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("victims %v", victims)
		}
		const want = "PriorityClassCapped the group ranks with the priority 0, the highest of its Pods, and not with 2000001000, " +
			"the value of its PriorityClass system-node-critical: a group ranks no higher than its Pods do"
		w.eventually("an event tells of it", func() bool { return w.recorded(want) == 1 })
		cycles := w.cycles()
		w.engine().gangs.Wake(gangNamed("gang"))
		w.eventually("the gang has been planned again", func() bool { return w.cycles() > cycles && w.quiet() })
		if n := w.recorded("PriorityClassCapped"); n != 1 {
			t.Errorf("it is told %d times, want once", n)
		}
	})
}
