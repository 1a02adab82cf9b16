// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestAGroupHasNoPriorityThatItsPodsDoNotHave: whoever may create PodGroups names the
// highest class that there is. Nobody is evicted for Pods of priority 0, and the group
// is told why.
func TestAGroupHasNoPriorityThatItsPodsDoNotHave(t *testing.T) {
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
	w.tracker().awaken(gangNamed("gang"))
	w.eventually("the gang has been planned again", func() bool { return w.cycles() > cycles && w.quiet() })
	if n := w.recorded("PriorityClassCapped"); n != 1 {
		t.Errorf("it is told %d times, want once", n)
	}
}

// TestAGroupThatIsPlacedAtOnceIsToldOfItsClass: the next time it may have to wait.
func TestAGroupThatIsPlacedAtOnceIsToldOfItsClass(t *testing.T) {
	b := newBench()
	b.classPriority = func(string) (int32, bool) { return 100, true }
	group, pod := makeGroup("gang", 1, ofClass("high")), makePod("a", inGroup("gang"), ofPriority(1))
	b.setGroup(group)
	if got := b.capping(gangName); got != "" {
		t.Error("a group without Pods is told that its class is worth more than they have")
	}
	b.add(pod)
	b.assumeAll(map[types.UID]string{pod.UID: "node-0"})
	if got := b.capping(gangName); got == "" {
		t.Error("a group that was placed at once is told nothing")
	}
	b.Remember(group, news.Record{ToldCapped: true})
	if got := b.capping(gangName); got != "" {
		t.Error("a group is told twice")
	}
}

// capping is what a gang is told if its PriorityClass does not count.
func (b *bench) capping(key types.NamespacedName) string {
	gang, _ := b.Look(key)
	return gang.Capping()
}

// TestMembersThatNeitherWaitNorArePlacedLendNoPriority: such Pods may never run.
func TestMembersThatNeitherWaitNorArePlacedLendNoPriority(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("gang", 1))
	waits := makePod("waits", inGroup("gang"), ofPriority(1))
	gated := makePod("gated", inGroup("gang"), ofPriority(9), func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) })
	b.add(waits, gated)
	if got, _ := b.priorityOfGang(waits); got != 1 {
		t.Errorf("the gang's priority is %d, want that of the member that waits, 1", got)
	}
	open := gated.DeepCopy()
	open.Spec.SchedulingGates = nil
	b.setPod(open)
	if got, _ := b.priorityOfGang(waits); got != 9 {
		t.Errorf("the gang's priority is %d, want that of the member that waits now, too, 9", got)
	}
}
