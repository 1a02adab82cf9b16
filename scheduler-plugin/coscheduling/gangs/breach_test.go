// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestMembersThatArePreemptedDoNotCount: from the moment that a gang is preempted
// its victims don't help a sibling that waits over the minimum. They go one by
// one, and the sibling would be all that is left.
func TestMembersThatArePreemptedDoNotCount(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("low", 2))
	victims := []*corev1.Pod{makePod("low-0", inGroup("low"), onNode("node-0")), makePod("low-1", inGroup("low"), onNode("node-0"))}
	sibling := makePod("low-2", inGroup("low"))
	b.add(append(victims, sibling)...)
	low := gangNamed("low")
	if !b.isNext(low) {
		t.Fatal("a member above the minimum has no cycle")
	}
	b.SetLeaving(victims, true)
	if b.isNext(low) {
		t.Error("a member has a cycle whose gang is being preempted")
	} else if got := b.toldWhy(low); got != "1 of at least 2 members exist" {
		t.Errorf("it is told %q", got)
	}
	for _, victim := range victims {
		ended := victim.DeepCopy()
		ended.Status.Phase = corev1.PodSucceeded
		b.SetPod(ended)
	}
	if b.isNext(low) {
		t.Error("a member has a cycle because members have succeeded that are being deleted")
	}
	b.SetLeaving(victims, false)
	if !b.isNext(low) {
		t.Error("a member has no cycle after the preemption has failed")
	}
}

// TestAGangThatCanNotSpareAMemberAnyMoreGoesAsAWhole: two preempt a member each, and the gang
// could spare one.
func TestAGangThatCanNotSpareAMemberAnyMoreGoesAsAWhole(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang"), onNode("node-0")),
		makePod("c", inGroup("gang"), onNode("node-0"))}
	b.add(members...)
	b.SetPod(preempted(members[0]))
	if len(b.drained().dissolved) > 0 {
		t.Fatalf("%v are evicted with a member that the gang can spare", b.drained().dissolved)
	}
	b.SetLeaving(members[1:2], true)
	if want := []string{"c"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted, want %v", b.drained().dissolved, want)
	}
}

// TestAGangThatWasBrokenAlreadyStaysWhenAMemberIsPreempted: it has lost a member for another
// reason, and waits for its replacement.
func TestAGangThatWasBrokenAlreadyStaysWhenAMemberIsPreempted(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 3))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang"), onNode("node-0"))}
	b.add(members...)
	b.SetLeaving(members[1:], true)
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted", b.drained().dissolved)
	}
}

// preempted is a Pod that is ending because it was preempted.
func preempted(pod *corev1.Pod) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
	}}
	now := metav1.Now()
	pod.DeletionTimestamp = &now
	return pod
}

// ofTwo is a bench with a gang of two, the guard of the gang, and its members a and b as the options have them.
func ofTwo(options ...podOption) (*bench, *Guard, []*corev1.Pod) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	members := []*corev1.Pod{makePod("a", options...), makePod("b", options...)}
	b.add(members...)
	return b, &Guard{Of: b.Gangs}, members
}

// TestTheLateEndOfASurplusDissolvesNothing: a gang could spare the member that was
// preempted. Until that has ended, the gang loses another one for another reason, whose
// replacement waits.
func TestTheLateEndOfASurplusDissolvesNothing(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang"), onNode("node-0")),
		makePod("c", inGroup("gang"), onNode("node-0"))}
	b.add(members...)
	surplus := preempted(members[2])
	b.SetPod(surplus)
	b.DeletePod(members[1])
	b.add(makePod("d", inGroup("gang")))
	b.DeletePod(surplus)
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted with it", b.drained().dissolved)
	}
}

// lostMinimum has a group say that it lacks its minimum since a time, because a member was deleted.
func lostMinimum(group *schedulingv1alpha1.PodGroup, since time.Time) *schedulingv1alpha1.PodGroup {
	group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionFalse,
		Reason: schedulingv1alpha1.ReasonPodDeleted, LastTransitionTime: metav1.NewTime(since)}}
	return group
}

// TestASchedulerThatBeginsDissolvesNothingAfterASurplusWasTaken: what the scheduler before has left alone its successor
// leaves alone, whether that has seen it or reads of it.
func TestASchedulerThatBeginsDissolvesNothingAfterASurplusWasTaken(t *testing.T) {
	a, b, c := makePod("a", inGroup("gang"), onNode("n")), makePod("b", inGroup("gang"), onNode("n")), makePod("c", inGroup("gang"), onNode("n"))
	d, surplus := makePod("d", inGroup("gang")), preempted(c)
	for name, happens := range map[string]func(*bench){
		"it has seen all": func(s *bench) {
			s.SetGroup(makeGroup("gang", 2))
			s.add(a, b, c)
			s.SetPod(surplus)
			s.DeletePod(b)
			s.add(d)
		},
		"it has seen all, and the surplus has ended": func(s *bench) {
			s.SetGroup(makeGroup("gang", 2))
			s.add(a, b, c)
			s.SetPod(surplus)
			s.DeletePod(b)
			s.DeletePod(surplus)
			s.add(d)
		},
		"it reads that the minimum was lost much later": func(s *bench) {
			s.SetGroup(lostMinimum(makeGroup("gang", 2), surplus.DeletionTimestamp.Add(time.Minute)))
			s.add(a, surplus, d)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBlindBench()
			happens(s)
			s.SetSynced()
			if len(s.dissolved) > 0 {
				t.Errorf("%v are evicted", s.dissolved)
			}
		})
	}
}

// TestASchedulerThatBeginsDissolvesAGangWhoseLossWasTold: the scheduler before has said that the gang lacks its minimum, and
// ended before it evicted the rest.
func TestASchedulerThatBeginsDissolvesAGangWhoseLossWasTold(t *testing.T) {
	taken := preempted(makePod("a", inGroup("gang"), onNode("n")))
	b := newBlindBench()
	b.SetGroup(lostMinimum(makeGroup("gang", 2), taken.DeletionTimestamp.Add(2*time.Second)))
	b.add(taken, makePod("b", inGroup("gang"), onNode("n")))
	b.SetSynced()
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted, want %v", b.drained().dissolved, want)
	}
}

// TestTheRestOfAGangIsDissolvedAgain that was to go as a whole: one member could not be deleted, and stays alone.
func TestTheRestOfAGangIsDissolvedAgain(t *testing.T) {
	b, _, members := ofTwo(inGroup("gang"), onNode("n"))
	b.SetLeaving(members, true)
	b.SetLeaving(members[1:], false)
	b.DeletePod(preempted(members[0]))
	b.drained().dissolved = nil
	b.DissolveAgain(members)
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted, want %v", b.drained().dissolved, want)
	}
}

// TestAGangGoesAsAWholeThoughTheMarkOfItsMemberIsNotSeen: the watch of Pods breaks while an ordinary Pod preempts the member.
func TestAGangGoesAsAWholeThoughTheMarkOfItsMemberIsNotSeen(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"), onNode("n"))
	if !guard.Take(members[0]) {
		t.Error("there is no need to preempt a member that runs")
	}
	b.DeletePod(members[0])
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted with it, want %v", b.drained().dissolved, want)
	}
}

// TestAGangStaysThatLosesAMemberWhichCouldNotBePreempted: the API server failed to delete the member, and the preemptor went elsewhere.
// Then the member's node goes.
func TestAGangStaysThatLosesAMemberWhichCouldNotBePreempted(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"), onNode("n"))
	guard.Take(members[0])
	guard.Spare(members[0])
	b.DeletePod(preempted(members[0]))
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted", b.drained().dissolved)
	}
}

// TestAMemberThatWasGivenBackIsNotTakenForPreempted: an ordinary Pod took the member before it was bound. The member was placed
// again, and its user deletes it.
func TestAMemberThatWasGivenBackIsNotTakenForPreempted(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"))
	nodes := map[types.UID]string{members[0].UID: "node-0", members[1].UID: "node-0"}
	b.assumeAll(gangName, nodes)
	guard.Take(members[0])
	b.Unassume(FailedBinding{Pod: members[0]})
	b.Unassume(FailedBinding{Pod: members[1]})
	b.SetLeaving(members, false)
	b.drained().dissolved = nil
	b.tick(time.Minute)
	b.assumeAll(gangName, nodes)
	bound := makePod("a", inGroup("gang"), onNode("node-0"))
	b.SetPod(bound)
	b.SetPod(makePod("b", inGroup("gang"), onNode("node-0")))
	b.DeletePod(bound)
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted", b.drained().dissolved)
	}
}

// TestAGangThatAnotherSchedulerPreemptsGoesAsAWhole, also if this scheduler could not preempt its member before, and the mark of that
// was taken back.
func TestAGangThatAnotherSchedulerPreemptsGoesAsAWhole(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"), onNode("n"))
	guard.Take(members[0])
	guard.Spare(members[0])
	b.SetPod(members[0])
	b.SetPod(preempted(members[0]))
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted with it, want %v", b.drained().dissolved, want)
	}
}

// TestAMemberThatCouldNotBePreemptedGoesWithTheRest: an ordinary Pod preempts a gang of which one member is being bound. The gang is
// broken up, and then that member can't be deleted.
func TestAMemberThatCouldNotBePreemptedGoesWithTheRest(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"))
	b.assumeAll(gangName, map[types.UID]string{members[0].UID: "node-0", members[1].UID: "node-0"})
	bound := makePod("a", inGroup("gang"), onNode("node-0"))
	b.SetPod(bound)
	guard.Take(members[1])
	b.SetPod(preempted(bound))
	guard.Spare(members[1])
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted with the others, want %v", b.drained().dissolved, want)
	}
}

// TestAGangOfWhichAMemberIsTakenBeforeItIsBoundGoesAsAWhole: that member is not deleted, but
// given back, and so no deletion tells of it.
func TestAGangOfWhichAMemberIsTakenBeforeItIsBoundGoesAsAWhole(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"))
	b.assumeAll(gangName, map[types.UID]string{members[0].UID: "node-0", members[1].UID: "node-0"})
	if !guard.Take(members[0]) {
		t.Error("there is no need to preempt a member that is about to be bound")
	}
	b.Unassume(FailedBinding{Pod: members[0]})
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted with it, want %v", b.drained().dissolved, want)
	}
	for _, pod := range members {
		if guard.Take(pod) {
			t.Errorf("%s is preempted again", pod.Name)
		}
	}
}

// TestMembersThatAreTakenBeforeTheyAreBoundAreNotDeleted: both are given back, one after the
// other.
func TestMembersThatAreTakenBeforeTheyAreBoundAreNotDeleted(t *testing.T) {
	b, guard, members := ofTwo(inGroup("gang"))
	b.assumeAll(gangName, map[types.UID]string{members[0].UID: "node-0", members[1].UID: "node-0"})
	guard.Take(members[0])
	guard.Take(members[1])
	b.Unassume(FailedBinding{Pod: members[1]})
	b.Unassume(FailedBinding{Pod: members[0]})
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted", b.drained().dissolved)
	}
}

// TestAGangOfWhichAMemberCanNotBeBoundStays: nobody has taken the member's room.
func TestAGangOfWhichAMemberCanNotBeBoundStays(t *testing.T) {
	b, _, members := ofTwo(inGroup("gang"))
	b.assumeAll(gangName, map[types.UID]string{members[0].UID: "node-0", members[1].UID: "node-0"})
	b.Unassume(FailedBinding{Pod: members[0]})
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted with it", b.drained().dissolved)
	}
}

// TestASchedulerThatBeginsDissolvesWhatPreemptionHasBroken, and nothing else.
func TestASchedulerThatBeginsDissolvesWhatPreemptionHasBroken(t *testing.T) {
	placed := func(name string) *corev1.Pod { return makePod(name, inGroup("gang"), onNode("node-0")) }
	marked := func(name string) *corev1.Pod {
		pod := preempted(placed(name))
		pod.DeletionTimestamp = nil
		return pod
	}
	tests := map[string]struct {
		pods []*corev1.Pod
		want []string
	}{
		"what is left of a gang that was to go as a whole":          {pods: []*corev1.Pod{marked("a"), marked("b")}, want: []string{"a", "b"}},
		"no gang of which nobody has gone":                          {pods: []*corev1.Pod{marked("a"), marked("b"), marked("c")}},
		"no gang of which one was to go, and that has lost another": {pods: []*corev1.Pod{marked("a"), placed("b")}},
		"a gang that preemption has taken a member of": {
			pods: []*corev1.Pod{placed("a"), placed("b"), preempted(placed("c"))}, want: []string{"a", "b"},
		},
		"no gang that could spare it": {
			pods: []*corev1.Pod{placed("a"), placed("b"), placed("c"), preempted(placed("d"))},
		},
		"no gang that would be short of members without the preemption": {
			pods: []*corev1.Pod{placed("a"), preempted(placed("b"))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBlindBench()
			b.SetGroup(makeGroup("gang", 3))
			b.add(tc.pods...)
			b.SetSynced()
			slices.Sort(b.drained().dissolved)
			if !slices.Equal(b.drained().dissolved, tc.want) {
				t.Errorf("%v are evicted, want %v", b.drained().dissolved, tc.want)
			}
		})
	}
}

// endsMarked is a bench with a gang of two, one of which ends by itself in a phase and is marked as preempted, and that one.
func endsMarked(phase corev1.PodPhase) (*bench, *corev1.Pod) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang"), onNode("node-0"))}
	b.add(members...)
	ended := preempted(members[0])
	ended.DeletionTimestamp, ended.Status.Phase = nil, phase
	b.SetPod(ended)
	return b, ended
}

// TestAMemberThatEndsByItselfWasNotPreempted, though it was marked when it could not be deleted.
func TestAMemberThatEndsByItselfWasNotPreempted(t *testing.T) {
	b, _ := endsMarked(corev1.PodFailed)
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted with a member that has failed", b.drained().dissolved)
	}
}

// TestAMemberThatHasSucceededAndIsDeletedWasNotPreempted, though it was marked as it ended: the others stay.
func TestAMemberThatHasSucceededAndIsDeletedWasNotPreempted(t *testing.T) {
	b, ended := endsMarked(corev1.PodSucceeded)
	going := preempted(ended) // while somebody's finalizer is there
	b.SetPod(going)
	b.DeletePod(going)
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted with a member that had succeeded", b.drained().dissolved)
	}
}

// TestAStandbyDissolvesWhatPreemptionHasBroken, also if the members that were preempted have gone before it leads.
func TestAStandbyDissolvesWhatPreemptionHasBroken(t *testing.T) {
	placed := func(name string) *corev1.Pod { return makePod(name, inGroup("gang"), onNode("node-0")) }
	preempts := func(b *bench, names ...string) {
		for _, name := range names {
			b.SetPod(preempted(placed(name)))
			b.DeletePod(preempted(placed(name)))
		}
	}
	tests := map[string]struct {
		before func(*bench)
		want   []string
	}{
		"two of four were preempted, and are gone": {func(b *bench) { preempts(b, "a", "b") }, []string{"c", "d"}},
		"they were deleted outright": {func(b *bench) {
			for _, name := range []string{"a", "b"} {
				marked := preempted(placed(name))
				marked.DeletionTimestamp = nil
				b.SetPod(marked)
				b.DeletePod(marked)
			}
		}, []string{"c", "d"}},
		"they had succeeded when they were marked": {func(b *bench) {
			for _, name := range []string{"a", "b"} {
				ended := preempted(placed(name))
				ended.DeletionTimestamp, ended.Status.Phase = nil, corev1.PodSucceeded
				b.SetPod(ended)
				b.DeletePod(ended)
			}
		}, nil},
		"they were deleted by somebody else": {func(b *bench) { b.DeletePod(placed("a")); b.DeletePod(placed("b")) }, nil},
		"one was preempted, and one deleted": {func(b *bench) { preempts(b, "a"); b.DeletePod(placed("b")) }, nil},
		"all were preempted, and others are being bound": {func(b *bench) {
			preempts(b, "a", "b", "c", "d")
			b.add(makePod("e", inGroup("gang")), makePod("f", inGroup("gang")), makePod("g", inGroup("gang")), makePod("h", inGroup("gang")))
			b.add(placed("e"), placed("f"))
		}, nil},
		"it was made whole since, and has lost others": {func(b *bench) {
			preempts(b, "a", "b")
			b.add(placed("e"), placed("f"))
			b.DeletePod(placed("e"))
			b.DeletePod(placed("f"))
		}, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBlindBench()
			b.SetGroup(makeGroup("gang", 4))
			b.add(placed("a"), placed("b"), placed("c"), placed("d"))
			tc.before(b)
			if len(b.drained().dissolved) > 0 {
				t.Errorf("%v are evicted by one that does not lead", b.drained().dissolved)
			}
			b.SetSynced()
			slices.Sort(b.drained().dissolved)
			if !slices.Equal(b.drained().dissolved, tc.want) {
				t.Errorf("%v are evicted, want %v", b.drained().dissolved, tc.want)
			}
		})
	}
}

// TestAGangThatStartsGoesAsAWholeInAnyMode, also if the scheduler before has died while it bound it. One that was placed
// once and has lost members goes one by one.
func TestAGangThatStartsGoesAsAWholeInAnyMode(t *testing.T) {
	for reason, want := range map[string][]string{
		schedulingv1alpha1.ReasonNotEnoughTasks: {"b", "c"}, "": {"b", "c"}, schedulingv1alpha1.ReasonPodDeleted: nil,
	} {
		b := newBlindBench()
		group := makeGroup("gang", 3, func(s *schedulingv1alpha1.PodGroupSpec) { s.DisruptionMode = schedulingv1alpha1.DisruptPod })
		if reason != "" {
			group.Status.Conditions = []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue, Reason: reason}}
		}
		b.SetGroup(group)
		a, other, waits := makePod("a", inGroup("gang"), onNode("node-0")), makePod("b", inGroup("gang"), onNode("node-0")), makePod("c", inGroup("gang"))
		b.add(a, other, waits)
		b.SetSynced()
		view := b.cycle()
		if !b.Assume(&view, map[types.UID]string{waits.UID: "node-0"}) {
			t.Fatal("the rest of the gang is not placed")
		}
		b.SetPod(preempted(a))
		slices.Sort(b.drained().dissolved)
		if !slices.Equal(b.drained().dissolved, want) {
			t.Errorf("of a gang that was told %q, %v are evicted with one that is bound, want %v", reason, b.drained().dissolved, want)
		}
	}
}
