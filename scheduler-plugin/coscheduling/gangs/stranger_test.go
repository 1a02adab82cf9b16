// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestWhoIsAMember goes through what can change it: the Pods and the PodGroup come
// in any order, and each may get another controller.
func TestWhoIsAMember(t *testing.T) {
	own, placed := makePod("own", inGroup("gang"), of("this")), makePod("placed", inGroup("gang"), of("this"), onNode("node-0"))
	stray, strayPlaced := makePod("stray", inGroup("gang")), makePod("stray-placed", inGroup("gang"), of("before"), onNode("node-0"))
	release := func(pod *corev1.Pod) *corev1.Pod {
		pod = pod.DeepCopy()
		pod.OwnerReferences = nil
		return pod
	}

	b := newBench()
	b.add(own, placed, stray, strayPlaced)
	b.wantCounts(t, "before the PodGroup is seen", 2, 2, 0)
	b.SetGroup(groupOf("this", "gang", 1))
	b.wantCounts(t, "in the group of an attempt", 1, 1, 2)
	b.DeletePod(stray)
	b.wantCounts(t, "after the end of a stranger", 1, 1, 1)
	b.add(stray)
	b.wantCounts(t, "with a stranger that comes after the group", 1, 1, 2)

	b.SetPod(release(own))
	b.wantCounts(t, "after a member lost its controller", 0, 1, 3)
	b.SetPod(own)
	b.wantCounts(t, "after it got its controller back", 1, 1, 2)

	b.SetGroup(groupOf("before", "gang", 1))
	b.wantCounts(t, "in the group of another attempt", 0, 1, 3)
	b.DeleteGroup(groupOf("before", "gang", 1))
	b.wantCounts(t, "without a group", 2, 2, 0)
	b.SetGroup(groupOf("this", "gang", 1))
	b.wantCounts(t, "in the group that was made anew", 1, 1, 2)

	nobodys := groupOf("this", "gang", 1)
	nobodys.OwnerReferences = nil
	b.SetGroup(nobodys)
	b.wantCounts(t, "in a group that lost its owner", 2, 2, 0)
	b.SetGroup(groupOf("this", "gang", 1))
	b.wantCounts(t, "in a group that got its owner back", 1, 1, 2)
}

// TestStrangersMakeNoGangComplete: neither the one that waits nor the one that has
// a node counts, and the one that waits gives it no priority.
func TestStrangersMakeNoGangComplete(t *testing.T) {
	b := newBench()
	b.SetGroup(groupOf("this", "gang", 2))
	own := makePod("own", inGroup("gang"), of("this"))
	stray := makePod("a", inGroup("gang"), ofPriority(9))
	b.add(own, stray, makePod("b", inGroup("gang"), onNode("node-0")))
	if got := b.toldWhy(gangName); b.isNext(gangName) || got != "1 of at least 2 members exist" {
		t.Errorf("the gang has a cycle with one of two members, or is told %q", got)
	}

	b.add(makePod("own-too", inGroup("gang"), of("this")))
	view := b.cycle()
	if len(view.Waiting) != 2 || view.Placed.Total != 0 || view.Rank.Priority != 0 {
		t.Errorf("the gang is planned with %d members waiting, %d placed and the priority %d", len(view.Waiting), view.Placed.Total, view.Rank.Priority)
	}
}

// TestTheEndOfAStrangerConcernsNoGang: a gang is dissolved when preemption takes a
// member that it needs, and not for a stranger; nor has it lost a member then.
func TestTheEndOfAStrangerConcernsNoGang(t *testing.T) {
	b := newBench()
	b.SetGroup(groupOf("this", "gang", 2))
	member := makePod("member", inGroup("gang"), of("this"), onNode("node-0"))
	stray := makePod("stray", inGroup("gang"), onNode("node-0"))
	b.add(member, stray)
	b.SetPod(preempted(stray))
	b.DeletePod(preempted(stray))
	if len(b.drained().dissolved) > 0 {
		t.Errorf("%v are evicted because a stranger was", b.drained().dissolved)
	}
	if g := b.gangs[gangName]; g.deletedMembers+g.failedMembers > 0 {
		t.Errorf("the gang has lost %d members, want none", g.deletedMembers+g.failedMembers)
	}
	if _, ok := priorityOf(b.gangs[gangName], stray); ok {
		t.Error("a stranger has the priority of the gang")
	}
}

// TestABindingThatOutlivesItsGroup: a member is being bound when the next attempt's
// group is seen. Whether the binding fails or not, nothing is counted twice.
func TestABindingThatOutlivesItsGroup(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBench()
		b.SetGroup(groupOf("this", "gang", 1))
		pod := makePod("own", inGroup("gang"), of("this"))
		b.add(pod)
		b.assumeAll(gangName, map[types.UID]string{pod.UID: "node-0"})
		b.SetGroup(groupOf("next", "gang", 1))
		b.wantCounts(t, "while the member is being bound", 0, 0, 1)
		want := 1
		if fails {
			b.Unassume(FailedBinding{Pod: pod})
			want = 0
		} else {
			b.SetPod(makePod("own", inGroup("gang"), of("this"), onNode("node-0")))
		}
		b.SetGroup(groupOf("this", "gang", 1))
		b.wantCounts(t, "after the binding", 1-want, want, 0)
	}
}

// TestStrangersAreToldInTime: a Pod that waits in vain is told so, but not before
// its own PodGroup had time to be seen.
func TestStrangersAreToldInTime(t *testing.T) {
	const grace = 5 * time.Second
	b := newBench()
	b.SetGroup(groupOf("this", "gang", 1))
	gate := func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) }
	stray := makePod("stray", inGroup("gang"))
	b.add(stray, makePod("own", inGroup("gang"), of("this")), makePod("placed", inGroup("gang"), onNode("node-0")),
		makePod("gated", inGroup("gang"), gate), makePod("elsewhere", inGroup("gang"), func(w *schedulertesting.PodWrapper) { w.SchedulerName("other") }))
	b.time = b.time.Add(time.Second)
	if pods, later := b.unmarked(gangName); len(pods) > 0 || later != grace-time.Second {
		t.Errorf("after a second %v are told, or others in %v, want nobody before %v", pods, later, grace-time.Second)
	}
	b.time = b.time.Add(grace - time.Second)
	pods, later := b.unmarked(gangName)
	if diff := cmp.Diff([]types.UID{stray.UID}, pods); diff != "" || later != 0 {
		t.Errorf("strangers that are told, and others in %v (-want, +got):\n%s", later, diff)
	}
	if mark := b.markOf(stray); mark.Reason != news.ReasonNotAMember {
		t.Errorf("the stranger is told %+v", mark)
	}

	marked := stray.DeepCopy()
	marked.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: news.ReasonNotAMember}}
	b.SetPod(marked)
	if pods, _ := b.unmarked(gangName); len(pods) > 0 {
		t.Errorf("%v are told twice", pods)
	}

	adopted := marked.DeepCopy()
	adopted.OwnerReferences = attemptOwner("this")
	b.SetPod(adopted)
	b.fail(gangName, groupOf("this", "gang", 1).UID, queue.Refusal{Message: "no room"}, time.Second, time.Second)
	if mark := b.markOf(stray); mark.Reason != corev1.PodReasonUnschedulable {
		t.Errorf("a stranger that became a member and finds no room is told %+v", mark)
	}
}
