// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

func TestGangsTakeTheirTurnsInOrder(t *testing.T) {
	tests := map[string]struct {
		first, second *schedulingv1alpha1.PodGroup
		firstPods     []podOption
		secondPods    []podOption
	}{
		"the one whose PriorityClass is higher goes first": {
			first:      bornAt(9, makeGroup("first", 2, ofClass("high"))),
			second:     bornAt(1, makeGroup("second", 2, ofClass("low"))),
			firstPods:  []podOption{ofPriority(4000)},
			secondPods: []podOption{ofPriority(5000)}, // the group's class counts, not its Pods'
		},
		"a class above the members' priority gives no more than they have": {
			first:      bornAt(9, makeGroup("first", 2)),
			second:     bornAt(1, makeGroup("second", 2, ofClass("high"))),
			firstPods:  []podOption{ofPriority(500)},
			secondPods: []podOption{ofPriority(499)},
		},
		"without a class the highest priority among the members counts": {
			first:     bornAt(9, makeGroup("first", 2)),
			second:    bornAt(1, makeGroup("second", 2)),
			firstPods: []podOption{ofPriority(7)},
		},
		"a class that does not exist is the same as none": {
			first:     bornAt(9, makeGroup("first", 2, ofClass("no-such"))),
			second:    bornAt(1, makeGroup("second", 2)),
			firstPods: []podOption{ofPriority(7)},
		},
		"of equal priority the older group goes first": {
			first:  bornAt(1, makeGroup("zeta", 2)),
			second: bornAt(2, makeGroup("alpha", 2)),
		},
		"of equal age the name decides": {
			first:  bornAt(1, makeGroup("alpha", 2)),
			second: bornAt(1, makeGroup("zeta", 2)),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.config.ClassValue = func(name string) (int32, bool) {
				value, ok := map[string]int32{"high": 1000, "low": 10}[name]
				return value, ok
			}
			enter := func(group *schedulingv1alpha1.PodGroup, options []podOption) {
				options = append([]podOption{inGroup(group.Name)}, options...)
				b.SetGroup(group)
				b.add(makePod(group.Name+"-0", options...), makePod(group.Name+"-1", options...))
			}
			enter(tc.second, tc.secondPods)
			enter(tc.first, tc.firstPods)
			var cycles []string
			for view := b.cycle(); view.Group != nil; view = b.cycle() {
				cycles = append(cycles, view.Key.Name)
				b.fail(view.Key, view.Group.UID, queue.Refusal{Message: "no room"}, time.Second, time.Second)
			}
			if diff := cmp.Diff([]string{tc.first.Name, tc.second.Name}, cycles); diff != "" {
				t.Errorf("cycles (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestThePriorityOfAGroupCountsAsFarAsItsPodsHaveIt: that of a class that it names does not count beside it.
func TestThePriorityOfAGroupCountsAsFarAsItsPodsHaveIt(t *testing.T) {
	for name, tc := range map[string]struct {
		asks, pods, other int32
		class             string
		wantBehind        bool
	}{
		"below that of its Pods":              {asks: 1, pods: 9, other: 5, wantBehind: true},
		"above that of others":                {asks: 6, pods: 9, other: 5},
		"above that of its Pods":              {asks: 9, pods: 4, other: 5, wantBehind: true},
		"below that of the class of its name": {asks: 1, pods: 9, other: 5, class: "high", wantBehind: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.config.ClassValue = func(string) (int32, bool) { return 1000, true }
			asking := dialect.FromOwn(bornAt(1, makeGroup("asking", 1)))
			asking.Spec.Priority, asking.Spec.PriorityClassName = &tc.asks, tc.class
			b.Gangs.SetGroup(asking)
			b.SetGroup(bornAt(2, makeGroup("other", 1)))
			b.add(makePod("asking-0", inGroup("asking"), ofPriority(tc.pods)), makePod("other-0", inGroup("other"), ofPriority(tc.other)))
			if behind := b.isNext(gangNamed("other")); behind != tc.wantBehind {
				t.Errorf("the other one is ahead: %t, want %t", behind, tc.wantBehind)
			}
		})
	}
}

// TestAPriorityClassThatComesGivesItsGangAnotherPlaceInLine.
func TestAPriorityClassThatComesGivesItsGangAnotherPlaceInLine(t *testing.T) {
	b := newBench()
	exists := false
	b.config.ClassValue = func(string) (int32, bool) { return 10, exists }
	b.SetGroup(bornAt(1, makeGroup("older", 1, ofClass("low"))))
	b.SetGroup(bornAt(2, makeGroup("younger", 1)))
	b.add(makePod("older-0", inGroup("older"), ofPriority(100)), makePod("younger-0", inGroup("younger"), ofPriority(100)))
	if !b.isNext(gangNamed("older")) {
		t.Error("the older gang is not ahead")
	}
	exists = true
	b.Rerank()
	if !b.isNext(gangNamed("younger")) {
		t.Error("the older gang is ahead, though its class is lower now")
	}
}

// TestAGangHasNoTurnBeforeOrdinaryPodsOfHigherPriority: the wake-up entry rang for another one.
func TestAGangHasNoTurnBeforeOrdinaryPodsOfHigherPriority(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	b.add(makePod("gang-0", inGroup("gang"), ofPriority(5)))
	if _, ok := b.Begin(6, b.time); ok {
		t.Error("the gang has a cycle that rang for a higher priority")
	}
	if _, ok := b.Begin(5, b.time); !ok {
		t.Error("the gang has no cycle")
	}
}

// TestAGroupThatIsPlacedAtOnceIsToldOfItsClass: the next time it may have to wait.
func TestAGroupThatIsPlacedAtOnceIsToldOfItsClass(t *testing.T) {
	b := newBench()
	b.config.ClassValue = func(string) (int32, bool) { return 100, true }
	group, pod := makeGroup("gang", 1, ofClass("high")), makePod("a", inGroup("gang"), ofPriority(1))
	b.SetGroup(group)
	if got := b.capping(gangName); got != "" {
		t.Error("a group without Pods is told that its class is worth more than they have")
	}
	b.add(pod)
	b.assumeAll(gangName, map[types.UID]string{pod.UID: "node-0"})
	if got := b.capping(gangName); got == "" {
		t.Error("a group that was placed at once is told nothing")
	}
	gang, _ := b.Look(gangName)
	gang.Record.Warned(gang.Warnings())
	b.Remember(dialect.FromOwn(group), gang.Record)
	if got := b.capping(gangName); got != "" {
		t.Error("a group is told twice")
	}
}

// TestMembersThatNeitherWaitNorArePlacedLendNoPriority: such Pods may never run.
func TestMembersThatNeitherWaitNorArePlacedLendNoPriority(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	waits := makePod("waits", inGroup("gang"), ofPriority(1))
	gated := makePod("gated", inGroup("gang"), ofPriority(9), func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) })
	b.add(waits, gated)
	if got, _ := priorityOf(b.gangs[gangName], waits); got != 1 {
		t.Errorf("the gang's priority is %d, want that of the member that waits, 1", got)
	}
	open := gated.DeepCopy()
	open.Spec.SchedulingGates = nil
	b.SetPod(open)
	if got, _ := priorityOf(b.gangs[gangName], waits); got != 9 {
		t.Errorf("the gang's priority is %d, want that of the member that waits now, too, 9", got)
	}
}

// TestGangsThatOutrankOneOnlyNowAreTriedAgain: its most important member has gone, and what is
// left of it may give way to them.
func TestGangsThatOutrankOneOnlyNowAreTriedAgain(t *testing.T) {
	tests := map[string]struct {
		rest int32 // the priority of the member that is left
		want bool
	}{
		"its priority falls": {rest: 1, want: true},
		"its priority stays": {rest: 9},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			first := makePod("runs-0", inGroup("runs"), onNode("node-0"), ofPriority(9))
			b.SetGroup(makeGroup("runs", 1))
			b.add(first, makePod("runs-1", inGroup("runs"), onNode("node-1"), ofPriority(tc.rest)))
			group := makeGroup("waits", 1)
			b.SetGroup(group)
			b.add(makePod("waits-0", inGroup("waits"), ofPriority(5)))
			b.cycle()
			b.fail(gangNamed("waits"), group.UID, queue.Refusal{Message: "no room"}, time.Second, time.Second)
			b.time = b.time.Add(2 * time.Second)
			b.DeletePod(first)
			if got := b.isNext(gangNamed("waits")); got != tc.want {
				t.Errorf("the gang that waits is to have a cycle: %t, want %t", got, tc.want)
			}
		})
	}
}

// TestThoseBehindAreTriedWhenTheMemberThatLiftedAGangHasSucceeded: it ranks lower from then on, in the queue, too.
func TestThoseBehindAreTriedWhenTheMemberThatLiftedAGangHasSucceeded(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 3))
	b.add(makePod("ticket", inGroup("gang"), ofPriority(9), onNode("node")), makePod("a", inGroup("gang"), ofPriority(1)), makePod("b", inGroup("gang"), ofPriority(1)))
	b.SetGroup(makeGroup("other", 1))
	b.add(makePod("other", inGroup("other"), ofPriority(5)))
	if !b.isNext(gangName) {
		t.Fatal("the gang with a member of 9 is not first in the queue")
	}
	b.add(makePod("ticket", inGroup("gang"), ofPriority(9), onNode("node"), func(w *schedulertesting.PodWrapper) { w.Phase(corev1.PodSucceeded) }))
	if !b.isNext(gangNamed("other")) {
		t.Error("it is still ahead of one of 5, with members of 1 that wait")
	}
}

// TestAMemberThatHasSucceededLiftsNobody: it counts for no quota of its priority any more.
func TestAMemberThatHasSucceededLiftsNobody(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	b.add(makePod("ticket", inGroup("gang"), ofPriority(9), onNode("node")), makePod("worker", inGroup("gang"), ofPriority(1)))
	if got := b.gangs[gangName].rank().Priority; got != 9 {
		t.Errorf("with a member of 9 that runs it has the priority %d", got)
	}
	b.add(makePod("ticket", inGroup("gang"), ofPriority(9), onNode("node"), func(w *schedulertesting.PodWrapper) { w.Phase(corev1.PodSucceeded) }))
	if got := b.gangs[gangName].rank().Priority; got != 1 {
		t.Errorf("when that has succeeded it has the priority %d, want 1 of the one that waits", got)
	}
}

// TestAGangWhoseMembersHaveAllSucceededIsWorthWhatItWas: who decided before, with members that ran, may not find it
// outranked now. It is lifted by nobody for anything else.
func TestAGangWhoseMembersHaveAllSucceededIsWorthWhatItWas(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	running := makePod("a", inGroup("gang"), ofPriority(9), onNode("node"))
	b.add(running)
	for _, name := range []string{"a", "b"} {
		b.add(makePod(name, inGroup("gang"), ofPriority(9), onNode("node"), inPhase(corev1.PodSucceeded)))
	}
	if guard := (&Guard{Of: b.Gangs}); guard.MayBeTaken(running, makePod("ordinary", ofPriority(9))) {
		t.Error("an ordinary Pod of the same priority may take a member")
	}
	if got := b.Standings()[gangName].Rank.Priority; got != 9 {
		t.Errorf("other gangs see it with the priority %d, want 9", got)
	}
	if got := b.gangs[gangName].rank().Priority; got != 0 {
		t.Errorf("in the queue it has the priority %d, want 0", got)
	}
}

// TestBetweenTwoStagesAGangRanksAsBefore: what is kept for the next one is worth no more and no less, also for a scheduler
// that takes over.
func TestBetweenTwoStagesAGangRanksAsBefore(t *testing.T) {
	for _, priority := range []int32{-5, 9} {
		for name, phases := range map[string][]corev1.PodPhase{
			"under one scheduler": {corev1.PodRunning, corev1.PodSucceeded}, "under one that takes over": {corev1.PodSucceeded},
		} {
			t.Run(fmt.Sprint(priority, " ", name), func(t *testing.T) {
				b := newBench()
				b.SetGroup(makeGroup("gang", 2))
				for _, phase := range phases {
					b.add(makePod("a", inGroup("gang"), staged, ofPriority(priority), onNode("node"), inPhase(phase)))
				}
				if got := b.gangs[gangName].rank().Priority; got != priority {
					t.Errorf("when its first stage has succeeded it has the priority %d in the queue, want %d", got, priority)
				}
			})
		}
	}
}
