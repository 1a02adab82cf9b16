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
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// staged has a Pod say that its gang is.
func staged(w *schedulertesting.PodWrapper) {
	w.Annotation("scheduling.lockstep.dev/staged", "true")
}

// tick is so much later, and says whether the gang "gang" is next.
func (b *bench) tick(d time.Duration) bool {
	b.time = b.time.Add(d)
	b.Next()
	return b.isNext(gangName)
}

// TestAGangComesInStages: an initializer runs alone, and then the nodes together, though the group counts all.
func TestAGangComesInStages(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 4))
	initializer := makePod("init", inGroup("gang"), staged)
	b.add(initializer)
	if b.tick(time.Second) {
		t.Error("it has its cycle before it is known who comes with the first one")
	}
	if _, _, again := b.Next(); !again.Equal(b.time.Add(time.Second)) {
		t.Errorf("it is looked at again at %s, want in a second", again)
	}
	if !b.tick(time.Second) {
		t.Fatal("it has no cycle, though nobody else has come")
	}
	b.cycle()
	if !b.assumeAll(gangName, map[types.UID]string{initializer.UID: "node"}) {
		t.Fatal("the first one is not enough")
	}
	b.add(makePod("init", inGroup("gang"), staged, onNode("node"), inPhase(corev1.PodSucceeded)))
	b.add(makePod("node-0", inGroup("gang"), staged))
	if b.tick(time.Second) {
		t.Error("a node has its cycle before it is known who comes with it")
	}
	b.add(makePod("node-1", inGroup("gang"), staged), makePod("node-2", inGroup("gang"), staged))
	if b.tick(time.Second) {
		t.Error("the nodes have their cycle before it is known who comes with them")
	}
	if !b.tick(time.Second) {
		t.Fatal("the nodes have no cycle, and all are there")
	}
	view := b.cycle()
	if view.Group.Spec.Minimum.Members != 4 {
		t.Errorf("%d are placed together, want all 4", view.Group.Spec.Minimum.Members)
	}
	if view.Broken() {
		t.Error("it goes before others, as a gang does that has lost members")
	}
	if b.assumeAll(gangName, map[types.UID]string{"uid-node-0": "node"}) {
		t.Error("a part of the stage is enough")
	}
}

// TestAGangThatIsNotStagedWaitsForAll, however long nobody comes.
func TestAGangThatIsNotStagedWaitsForAll(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	b.add(makePod("init", inGroup("gang")))
	if b.tick(time.Hour) {
		t.Error("it has its cycle with one of two")
	}
}

// TestAStageIsNoLargerThanTheMinimum: more members are placed as they fit. What the group itself says counts as
// what its Pods say, and nobody is waited for who was there before.
func TestAStageIsNoLargerThanTheMinimum(t *testing.T) {
	b := newBlindBench()
	group := makeGroup("gang", 2)
	group.Annotations = map[string]string{"scheduling.lockstep.dev/staged": "true"}
	b.SetGroup(group)
	b.time = b.time.Add(time.Hour)
	for _, name := range []string{"a", "b", "c"} {
		b.add(makePod(name, inGroup("gang"), func(w *schedulertesting.PodWrapper) {
			w.CreationTimestamp(bornAt(0, makeGroup("", 1)).CreationTimestamp)
		}))
	}
	b.SetSynced()
	if !b.isNext(gangName) {
		t.Fatal("it has no cycle")
	}
	if view := b.cycle(); view.Group.Spec.Minimum.Members != 2 {
		t.Errorf("%d are placed together, want 2", view.Group.Spec.Minimum.Members)
	}
	group = group.DeepCopy()
	group.ResourceVersion = "8"
	b.SetGroup(group)
	if got := b.gangs[gangName].group; got.Spec.Minimum.Members != 2 || got.ResourceVersion != "8" {
		t.Errorf("a write of its status makes it %+v", got)
	}
}

// stages are three members of a gang that comes in stages, and run.
func stages(b *bench) []*corev1.Pod {
	b.SetGroup(makeGroup("gang", 10))
	running := []*corev1.Pod{makePod("a", inGroup("gang"), staged, onNode("node")), makePod("b", inGroup("gang"), staged, onNode("node")),
		makePod("c", inGroup("gang"), staged, onNode("node"))}
	b.add(running...)
	b.tick(3 * time.Second)
	return running
}

// TestAGangInStagesIsPreemptedAsAWhole, as any other is, whether or not members of its next stage wait: single
// Pods are not taken of a stage that runs.
func TestAGangInStagesIsPreemptedAsAWhole(t *testing.T) {
	for name, waits := range map[string]bool{"nobody waits": false, "the next stage waits": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			running := stages(b)
			if waits {
				b.add(makePod("d", inGroup("gang"), staged))
				b.tick(3 * time.Second)
			}
			if n := b.Standings()[gangName].Group.Spec.Minimum.Members; n != 3 {
				t.Errorf("those that run are %d to others, want 3", n)
			}
			if cost := (&Guard{Of: b.Gangs}).Cost(running[0]); cost != 3 {
				t.Errorf("%d go with one of them, want 3", cost)
			}
			b.SetLeaving(running[:1], true)
			slices.Sort(b.drained().dissolved)
			if want := []string{"b", "c"}; !slices.Equal(b.drained().dissolved, want) {
				t.Errorf("%v are evicted with it, want %v", b.drained().dissolved, want)
			}
		})
	}
}

// TestAGangInStagesOfWhichAMemberIsTakenBeforeItIsBoundGoesAsAWhole, too.
func TestAGangInStagesOfWhichAMemberIsTakenBeforeItIsBoundGoesAsAWhole(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 10))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), staged), makePod("b", inGroup("gang"), staged)}
	b.add(members...)
	b.tick(3 * time.Second)
	b.assumeAll(gangName, map[types.UID]string{members[0].UID: "node", members[1].UID: "node"})
	(&Guard{Of: b.Gangs}).Take(members[0])
	b.Unassume(FailedBinding{Pod: members[0]})
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted with it, want %v", b.drained().dissolved, want)
	}
}

// TestASchedulerThatBeginsDissolvesAStageThatPreemptionHasBroken: the one before it has not come to it.
func TestASchedulerThatBeginsDissolvesAStageThatPreemptionHasBroken(t *testing.T) {
	b := newBlindBench()
	b.time = b.time.Add(time.Hour)
	b.SetGroup(makeGroup("gang", 10))
	b.add(makePod("a", inGroup("gang"), staged, onNode("node")), preempted(makePod("b", inGroup("gang"), staged, onNode("node"))))
	b.SetSynced()
	if want := []string{"a"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted, want %v", b.drained().dissolved, want)
	}
}

// TestAStageThatLosesAMemberWaitsForAnother: who is left is not enough. One that has succeeded is not lost when its
// Pod is deleted, and after all are gone a stage begins anew.
func TestAStageThatLosesAMemberWaitsForAnother(t *testing.T) {
	b := newBench()
	running := stages(b)
	minimum := func() int32 { return b.gangs[gangName].group.Spec.Minimum.Members }
	b.DeletePod(running[0])
	if got := minimum(); got != 3 {
		t.Errorf("without one of them %d are placed together, want 3", got)
	}
	b.add(makePod("b", inGroup("gang"), staged, onNode("node"), inPhase(corev1.PodSucceeded)))
	b.DeletePod(running[1])
	if got := minimum(); got != 2 {
		t.Errorf("without one that has succeeded %d are placed together, want 2", got)
	}
	b.DeletePod(running[2])
	b.add(makePod("d", inGroup("gang"), staged))
	if !b.tick(3 * time.Second) {
		t.Error("a stage of one has no cycle when all others are gone")
	}
}

// fromSecond has a Pod be created a number of seconds after the time of a bench.
func fromSecond(b *bench, seconds int) podOption {
	created := metav1.NewTime(b.time.Add(time.Duration(seconds) * time.Second))
	return func(w *schedulertesting.PodWrapper) { w.CreationTimestamp(created) }
}

// preemptedIn is a Pod that was preempted a number of seconds after the time of a bench, and has half a minute to end.
func preemptedIn(b *bench, seconds int, pod *corev1.Pod) *corev1.Pod {
	pod = preempted(pod)
	ends, grace := metav1.NewTime(b.time.Add(time.Duration(seconds+30)*time.Second)), int64(30)
	pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &ends, &grace
	return pod
}

// wantStageOf checks that a gang runs that many members of "gang" as a stage, one of which is this, and that
// a smaller stage may follow it.
func (b *bench) wantStageOf(t *testing.T, members int, one *corev1.Pod) {
	t.Helper()
	if cost := (&Guard{Of: b.Gangs}).Cost(one); cost != members {
		t.Errorf("%d go with one of those that run, want %d", cost, members)
	}
	b.add(makePod("next", inGroup("gang"), staged))
	if !b.tick(time.Hour) {
		t.Error("the next stage has no cycle")
	}
}

// TestAStageThatWasPreemptedDoesNotCountTwice while its Pods still end, and others run in their place: the
// scheduler neither dissolves those, at once or when it begins, nor waits for more in the next stage, and takes no
// single Pods of it.
func TestAStageThatWasPreemptedDoesNotCountTwice(t *testing.T) {
	b := newBench()
	running := stages(b)
	for _, pod := range running {
		b.SetPod(preempted(pod))
	}
	b.drained().dissolved = nil
	members, nodes := make([]*corev1.Pod, 0, 3), map[types.UID]string{}
	for _, name := range []string{"a-2", "b-2", "c-2"} {
		pod := makePod(name, inGroup("gang"), staged)
		members, nodes[pod.UID] = append(members, pod), "other"
	}
	b.add(members...)
	b.tick(3 * time.Second)
	if !b.assumeAll(gangName, nodes) {
		t.Fatal("those that come in their place have none")
	}
	for _, pod := range members {
		b.add(makePod(pod.Name, inGroup("gang"), staged, onNode("other")))
	}
	b.DissolveAgain(b.pods(gangName))
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted", b.drained().dissolved)
	}
	b.wantStageOf(t, 3, members[0])
}

// TestASchedulerThatBeginsLeavesAStageThatHasReplacedWhatPreemptionTook: the Pods of before have time to end, and may
// have been deleted in the second in which the others were created.
func TestASchedulerThatBeginsLeavesAStageThatHasReplacedWhatPreemptionTook(t *testing.T) {
	for _, since := range []int{60, 75} {
		b := newBlindBench()
		b.SetGroup(makeGroup("gang", 10))
		var running []*corev1.Pod
		for _, name := range []string{"a", "b", "c"} {
			b.add(preemptedIn(b, 60, makePod(name, inGroup("gang"), staged, onNode("node"), fromSecond(b, 0))))
			running = append(running, makePod(name+"-2", inGroup("gang"), staged, onNode("other"), fromSecond(b, since)))
		}
		b.add(running...)
		b.time = b.time.Add(80 * time.Second)
		b.SetSynced()
		b.DissolveAgain(b.pods(gangName))
		if len(b.drained().dissolved) > 0 {
			t.Errorf("%v are evicted, which were created after %d seconds", b.drained().dissolved, since)
		}
		b.wantStageOf(t, 3, running[0])
	}
}

// TestMembersThatWereNeverBoundAreNoneThatAStageHasLost, whatever becomes of them.
func TestMembersThatWereNeverBoundAreNoneThatAStageHasLost(t *testing.T) {
	for name, fails := range map[string]func(b *bench, pod *corev1.Pod){
		"their binding fails, and they are deleted": func(b *bench, pod *corev1.Pod) {
			b.Unassume(FailedBinding{Pod: pod})
			b.DeletePod(pod)
		},
		"they are deleted": func(b *bench, pod *corev1.Pod) { b.DeletePod(pod) },
		"they are being deleted, and their binding fails": func(b *bench, pod *corev1.Pod) {
			ending := makePod(pod.Name, inGroup("gang"), staged, func(w *schedulertesting.PodWrapper) { w.Terminating() })
			b.SetPod(ending)
			b.Unassume(FailedBinding{Pod: ending})
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			running := stages(b)
			more := []*corev1.Pod{makePod("d", inGroup("gang"), staged), makePod("e", inGroup("gang"), staged)}
			b.add(more...)
			b.tick(3 * time.Second)
			if !b.assumeAll(gangName, map[types.UID]string{more[0].UID: "node", more[1].UID: "node"}) {
				t.Fatal("the next stage has no place")
			}
			for _, pod := range more {
				fails(b, pod)
			}
			b.wantStageOf(t, 3, running[0])
		})
	}
}

// TestAReplacementThatCanNotBeBoundIsStillWaitedFor: the stage has lost another one.
func TestAReplacementThatCanNotBeBoundIsStillWaitedFor(t *testing.T) {
	b := newBench()
	running := stages(b)
	b.DeletePod(running[0])
	another := makePod("a-2", inGroup("gang"), staged)
	b.add(another)
	b.tick(3 * time.Second)
	b.assumeAll(gangName, map[types.UID]string{another.UID: "node"})
	b.Unassume(FailedBinding{Pod: another})
	b.DeletePod(another)
	if got := b.gangs[gangName].group.Spec.Minimum.Members; got != 3 {
		t.Errorf("%d are placed together, want 3", got)
	}
}

// TestTheRestOfAPreemptedStageGoes, also if another of its members could not be bound meanwhile, and the eviction
// has to be tried again.
func TestTheRestOfAPreemptedStageGoes(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 10))
	members := []*corev1.Pod{makePod("a", inGroup("gang"), staged), makePod("b", inGroup("gang"), staged), makePod("c", inGroup("gang"), staged)}
	b.add(makePod("init", inGroup("gang"), staged, onNode("node"), inPhase(corev1.PodSucceeded)))
	b.add(members...)
	b.tick(3 * time.Second)
	b.assumeAll(gangName, map[types.UID]string{members[0].UID: "node", members[1].UID: "node", members[2].UID: "node"})
	(&Guard{Of: b.Gangs}).Take(members[0])
	b.Unassume(FailedBinding{Pod: members[0]})
	b.Unassume(FailedBinding{Pod: members[2]})
	b.drained().dissolved = nil
	b.SetLeaving(members[1:2], false)
	b.DissolveAgain(b.pods(gangName))
	if want := []string{"b"}; !slices.Equal(b.drained().dissolved, want) {
		t.Errorf("%v are evicted, want %v", b.drained().dissolved, want)
	}
}

// TestAPodGroupThatIsMadeAnewIsNotInStages because Pods of the one before it said so.
func TestAPodGroupThatIsMadeAnewIsNotInStages(t *testing.T) {
	b := newBench()
	for _, pod := range stages(b) {
		b.DeletePod(pod)
	}
	b.SetGroup(remade(makeGroup("gang", 10)))
	b.add(makePod("d", inGroup("gang")))
	if b.tick(time.Hour) {
		t.Error("it has its cycle with one of ten")
	}
}

func remade(group *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
	group.UID = "uid-of-another"
	return group
}
