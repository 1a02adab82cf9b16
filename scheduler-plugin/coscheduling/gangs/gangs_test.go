// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestWhoIsInLine, and what a gang is told that is not.
func TestWhoIsInLine(t *testing.T) {
	member := func(name string, options ...podOption) *corev1.Pod {
		return makePod(name, append([]podOption{inGroup("gang")}, options...)...)
	}
	tests := map[string]struct {
		group *schedulingv1alpha1.PodGroup
		pods  []*corev1.Pod
		// want is what the gang lacks; empty if it is in the queue.
		want string
	}{
		"no gang whose group nobody has seen": {
			pods: []*corev1.Pod{member("a")}, want: "its group",
		},
		"no incomplete gang": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a")},
			want:  "1 of at least 2 members exist",
		},
		"a complete gang": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("b"), member("a")},
		},
		"one that placed and succeeded members make complete": {
			group: makeGroup("gang", 3),
			pods:  []*corev1.Pod{member("a", onNode("n")), member("b", onNode("n"), inPhase(corev1.PodSucceeded)), member("c")},
		},
		"none that failed members and those being deleted would": {
			group: makeGroup("gang", 3),
			pods: []*corev1.Pod{member("a", onNode("n"), inPhase(corev1.PodFailed)), member("c"),
				member("b", func(w *schedulertesting.PodWrapper) { w.Terminating() })},
			want: "1 of at least 3 members exist",
		},
		"none that members of other schedulers and gated ones would": {
			group: makeGroup("gang", 2),
			pods: []*corev1.Pod{member("c"),
				member("a", func(w *schedulertesting.PodWrapper) { w.SchedulerName("other") }),
				member("b", func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) })},
			want: "1 of at least 2 members exist; 1 more wait for the scheduler other, which is not served here",
		},
		"one that a member of another scheduler makes complete, which is bound": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a"), member("b", onNode("n"), func(w *schedulertesting.PodWrapper) { w.SchedulerName("other") })},
		},
		"none that members in another namespace would": {
			group: makeGroup("gang", 2),
			pods:  []*corev1.Pod{member("a"), member("b", func(w *schedulertesting.PodWrapper) { w.Namespace("elsewhere") })},
			want:  "1 of at least 2 members exist",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			if tc.group != nil {
				b.SetGroup(tc.group)
			}
			b.add(tc.pods...)
			got := ""
			if !b.isNext(gangName) {
				got = "its group"
				if told := b.toldWhy(gangName); told != "" {
					got = told
				}
			}
			if got != tc.want {
				t.Errorf("the gang lacks %q, want %q", got, tc.want)
			}
		})
	}
}

// TestBackoff follows a gang through failures: the wait doubles, room that grows
// starts it over, and nothing is planned before it ends.
func TestBackoff(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	b.SetGroup(group)
	b.add(makePod("a", inGroup("gang")), makePod("b", inGroup("gang")))
	for i, step := range []struct {
		room int
		want time.Duration
	}{
		{0, time.Second}, {0, 2 * time.Second}, {0, 4 * time.Second}, {0, 5 * time.Second}, {0, 5 * time.Second},
		{1, time.Second}, {1, 2 * time.Second},
	} {
		if b.cycle().Key != gangName {
			t.Fatalf("step %d: the gang is not planned", i)
		}
		b.fail(gangName, group.UID, queue.Refusal{Message: "no room", Room: step.room}, time.Second, 5*time.Second)
		b.somethingHappens()
		if got := b.queue.Until().Sub(b.time); got != step.want {
			t.Errorf("step %d: an event wakes the gang after %v, want %v", i, got, step.want)
		}
		b.time = b.time.Add(step.want - time.Millisecond)
		if b.isNext(gangName) {
			t.Errorf("step %d: the gang is due before its back-off ends", i)
		}
		b.time = b.time.Add(time.Millisecond)
		if !b.isNext(gangName) {
			t.Errorf("step %d: the gang is not due when its back-off ends", i)
		}
	}
}

func TestRecreatedGroupInheritsNothing(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.SetGroup(group)
	b.add(makePod("a", inGroup("gang")))
	b.cycle()
	b.fail(gangName, group.UID, queue.Refusal{Message: "no room"}, time.Hour, time.Hour)
	late := b.write(gangName)

	again := makeGroup("gang", 1)
	again.UID = "another"
	b.SetGroup(again)
	if !b.isNext(gangName) {
		t.Error("the new group has no cycle")
	}
	b.fail(gangName, group.UID, queue.Refusal{Message: "late news of the old group"}, time.Hour, time.Hour)
	b.Remember(dialect.FromOwn(group), late)
	if got := b.toldWhy(gangName); got != "" {
		t.Errorf("the new group is told what the old one was: %q", got)
	}
	if gang, _ := b.Look(gangName); gang.Record.Conditions != nil {
		t.Errorf("the new group has the conditions of the old one: %v", gang.Record.Conditions)
	}
	if !b.isNext(gangName) {
		t.Error("a failure of the old group keeps the new one from its cycle")
	}
}

// TestNoRoomIsKeptAboveTheMinimum: a gang with one of two members placed loses its
// right to room when one is enough.
func TestNoRoomIsKeptAboveTheMinimum(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 2)
	b.SetGroup(group)
	b.add(makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang")))
	b.fail(gangName, group.UID, queue.Refusal{Message: "no room"}, time.Second, time.Second)
	if !b.Waits(gangName, group.UID, 0) {
		t.Error("no room is kept for a gang that lacks its minimum")
	}
	lowered := makeGroup("gang", 1)
	lowered.Generation = 2
	b.SetGroup(lowered)
	if b.Waits(gangName, group.UID, 0) {
		t.Error("room is kept for a gang that has its minimum")
	}
}

// TestAGangThatChangesWhileItIsPlannedIsNotPlaced, if what was found is too little now.
func TestAGangThatChangesWhileItIsPlannedIsNotPlaced(t *testing.T) {
	tests := map[string]struct {
		change func(*bench)
		want   bool
	}{
		"nothing changes": {change: func(*bench) {}, want: true},
		"a member is gone": {change: func(b *bench) {
			b.DeletePod(makePod("a", inGroup("gang")))
		}},
		"a member above the minimum is gone": {change: func(b *bench) {
			b.DeletePod(makePod("c", inGroup("gang")))
		}, want: true},
		"the minimum is higher": {change: func(b *bench) {
			higher := makeGroup("gang", 4)
			higher.Generation = 2
			b.SetGroup(higher)
		}},
		"the group is another one": {change: func(b *bench) {
			another := makeGroup("gang", 2)
			another.UID = "another"
			b.SetGroup(another)
		}},
		"the group is gone": {change: func(b *bench) { b.DeleteGroup(makeGroup("gang", 2)) }},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.SetGroup(makeGroup("gang", 2))
			b.add(makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang")))
			view := b.cycle()
			nodes := map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"}
			if name == "a member above the minimum is gone" {
				nodes["uid-c"] = "node-0"
			}
			tc.change(b)
			if got := b.Assume(&view, nodes); got != tc.want {
				t.Errorf("the gang is placed: %t, want %t", got, tc.want)
			}
			if g := b.gangs[gangName]; g != nil && !tc.want && g.placed.Total > 0 {
				t.Errorf("%d members are placed, want none", g.placed.Total)
			}
		})
	}
}

// TestAMemberThatGoesInTheTurnIsNotPlanned: the others have their place, and nobody is left.
func TestAMemberThatGoesInTheTurnIsNotPlanned(t *testing.T) {
	for when, goes := range map[string]func(b *bench, view *View, nodes map[types.UID]string, pod *corev1.Pod){
		"before the others have their place": func(b *bench, view *View, nodes map[types.UID]string, pod *corev1.Pod) {
			b.DeletePod(pod)
			b.Assume(view, nodes)
		},
		"after the others have their place": func(b *bench, view *View, nodes map[types.UID]string, pod *corev1.Pod) {
			b.Assume(view, nodes)
			b.DeletePod(pod)
		},
	} {
		t.Run(when, func(t *testing.T) {
			b := newBench()
			b.SetGroup(makeGroup("gang", 2))
			pods := []*corev1.Pod{makePod("a", inGroup("gang")), makePod("b", inGroup("gang")), makePod("c", inGroup("gang"))}
			b.add(pods...)
			view := b.cycle()
			goes(b, &view, map[types.UID]string{"uid-a": "node-0", "uid-b": "node-0"}, pods[2])
			b.fail(gangName, view.Group.UID, queue.Refusal{Message: "no room for 1 more members above the minimum"}, 0, 0)
			if b.queue.IsReady(gangName) {
				t.Error("the gang is to be planned, though nobody waits")
			}
			b.somethingHappens()
			if view := b.cycle(); view.Group != nil {
				t.Errorf("the gang has a cycle with %d members that wait", len(view.Waiting))
			}
		})
	}
}

// TestAClaimOutlastsTheTurnThatMadeIt: it is known only after the cycle that the gang has
// found no place, and claims may be pruned before.
func TestAClaimOutlastsTheTurnThatMadeIt(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.SetGroup(group)
	b.add(makePod("a", inGroup("gang")))
	if !b.Waits(gangName, group.UID, 0) {
		t.Error("the gang's claim would be pruned in its cycle")
	}
}

// TestAMemberThatChangesItsRoleWhileItWaits: the gang lacks just that role, and then
// has it.
func TestAMemberThatChangesItsRoleWhileItWaits(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2, func(s *schedulingv1alpha1.PodGroupSpec) { s.MinRoleMember = map[string]int32{"ps": 1} }))
	worker := func(n int) *corev1.Pod { return makePod(fmt.Sprintf("gang-%d", n), inGroup("gang"), inRole("worker")) }
	b.add(makePod("gang-0", inGroup("gang"), inRole("ps")), worker(1))
	if view := b.cycle(); view.Group == nil || view.ClassKeys[0] == view.ClassKeys[1] {
		t.Fatalf("classes %q; want the gang planned with a class for each role", view.ClassKeys)
	}
	b.SetPod(worker(0))
	if got := b.toldWhy(gangName); b.isNext(gangName) || got != "2 of at least 2 members exist, 0 of at least 1 in role ps" {
		t.Errorf("the gang has a cycle, or is told %q", got)
	}
	b.SetPod(makePod("gang-1", inGroup("gang"), inRole("ps")))
	view := b.cycle()
	if view.Group == nil || view.ClassKeys[0] != "class of a worker" || view.ClassKeys[1] == view.ClassKeys[0] {
		t.Errorf("classes %q; want the gang planned with the roles of now", view.ClassKeys)
	}
}

// TestAMemberThatWasMadeAnewHasLostItsPlace: so has the gang lost a member.
func TestAMemberThatWasMadeAnewHasLostItsPlace(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 1))
	placed, again := makePod("a", inGroup("gang"), onNode("node-0")), makePod("a", inGroup("gang"), func(w *schedulertesting.PodWrapper) { w.UID("another") })
	b.add(placed)
	b.DeletePod(placed)
	b.SetPod(again)
	b.wantCounts(t, "after a placed member was made anew", 1, 0, 0)
	if g := b.gangs[gangName]; g.deletedMembers != 1 {
		t.Errorf("the gang has lost %d members, want 1", g.deletedMembers)
	}
}

// TestAPodGroupThatWasMadeAnewInheritsNothing: not even the back-off of the one
// before.
func TestAPodGroupThatWasMadeAnewInheritsNothing(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.SetGroup(group)
	b.add(makePod("a", inGroup("gang")))
	b.cycle()
	b.fail(gangName, group.UID, queue.Refusal{Message: "no room"}, time.Hour, time.Hour)
	again := group.DeepCopy()
	again.UID = "another"
	b.SetGroup(again)
	if !b.isNext(gangName) {
		t.Error("the new group has no cycle")
	}
}
