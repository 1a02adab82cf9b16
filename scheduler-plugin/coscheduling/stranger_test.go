// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

func attemptOwner(uid types.UID) []metav1.OwnerReference {
	configMap := &metav1.ObjectMeta{Name: "fw-attempt", UID: uid}
	return []metav1.OwnerReference{*metav1.NewControllerRef(configMap, corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
}

// groupOf makes the PodGroup of an attempt.
func groupOf(attempt types.UID, name string, minMember int32) *schedulingv1alpha1.PodGroup {
	group := makeGroup(name, minMember)
	group.UID = "group-of-" + attempt
	group.OwnerReferences = attemptOwner(attempt)
	return group
}

// of makes a Pod one of an attempt.
func of(attempt types.UID) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Pod.OwnerReferences = attemptOwner(attempt) }
}

// counts are what the gang "gang" counts.
func (b *bench) counts() map[string]int {
	b.mu.RLock()
	defer b.mu.RUnlock()
	g := b.gangs[gangName]
	return map[string]int{"waiting": int(g.waiting.Total), "placed": int(g.placed.Total), "bound": int(g.bound.Total), "strangers": g.strangers}
}

func (b *bench) wantCounts(t *testing.T, when string, waiting, placed, strangers int) {
	t.Helper()
	want := map[string]int{"waiting": waiting, "placed": placed, "bound": placed, "strangers": strangers}
	if diff := cmp.Diff(want, b.counts()); diff != "" {
		t.Errorf("%s (-want, +got):\n%s", when, diff)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	if what := miscounted(b.tracker, b.gangs[gangName]); what != "" {
		t.Errorf("%s: %s", when, what)
	}
}

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
	b.setGroup(groupOf("this", "gang", 1))
	b.wantCounts(t, "in the group of an attempt", 1, 1, 2)
	b.deletePod(stray)
	b.wantCounts(t, "after the end of a stranger", 1, 1, 1)
	b.add(stray)
	b.wantCounts(t, "with a stranger that comes after the group", 1, 1, 2)

	b.setPod(release(own))
	b.wantCounts(t, "after a member lost its controller", 0, 1, 3)
	b.setPod(own)
	b.wantCounts(t, "after it got its controller back", 1, 1, 2)

	b.setGroup(groupOf("before", "gang", 1))
	b.wantCounts(t, "in the group of another attempt", 0, 1, 3)
	b.deleteGroup(groupOf("before", "gang", 1))
	b.wantCounts(t, "without a group", 2, 2, 0)
	b.setGroup(groupOf("this", "gang", 1))
	b.wantCounts(t, "in the group that was made anew", 1, 1, 2)

	nobodys := groupOf("this", "gang", 1)
	nobodys.OwnerReferences = nil
	b.setGroup(nobodys)
	b.wantCounts(t, "in a group that lost its owner", 2, 2, 0)
	b.setGroup(groupOf("this", "gang", 1))
	b.wantCounts(t, "in a group that got its owner back", 1, 1, 2)
}

// TestStrangersMakeNoGangComplete: neither the one that waits nor the one that has
// a node counts, and the one that waits gives it no priority.
func TestStrangersMakeNoGangComplete(t *testing.T) {
	b := newBench()
	b.setGroup(groupOf("this", "gang", 2))
	own := makePod("own", inGroup("gang"), of("this"))
	stray := makePod("a", inGroup("gang"), ofPriority(9))
	b.add(own, stray, makePod("b", inGroup("gang"), onNode("node-0")))
	if got := b.toldWhy(gangName); b.isNext(gangName) || got != "1 of at least 2 members exist" {
		t.Errorf("the gang has a turn with one of two members, or is told %q", got)
	}

	b.add(makePod("own-too", inGroup("gang"), of("this")))
	view := b.turn()
	if len(view.Waiting) != 2 || view.Placed.Total != 0 || view.Rank.Priority != 0 {
		t.Errorf("the gang is planned with %d members waiting, %d placed and the priority %d", len(view.Waiting), view.Placed.Total, view.Rank.Priority)
	}
}

// TestTheEndOfAStrangerConcernsNoGang: a gang is dissolved when preemption takes a
// member that it needs, and not for a stranger; nor has it lost a member then.
func TestTheEndOfAStrangerConcernsNoGang(t *testing.T) {
	b := newBench()
	var dissolved []string
	b.dissolve = func(_ *schedulingv1alpha1.PodGroup, rest []*corev1.Pod) {
		for _, pod := range rest {
			dissolved = append(dissolved, pod.Name)
		}
	}
	b.setGroup(groupOf("this", "gang", 2))
	member := makePod("member", inGroup("gang"), of("this"), onNode("node-0"))
	stray := makePod("stray", inGroup("gang"), onNode("node-0"))
	b.add(member, stray)
	b.setPod(preempted(stray))
	b.deletePod(preempted(stray))
	if len(dissolved) > 0 {
		t.Errorf("%v are evicted because a stranger was", dissolved)
	}
	if g := b.gangs[gangName]; g.deletedMembers+g.failedMembers > 0 {
		t.Errorf("the gang has lost %d members, want none", g.deletedMembers+g.failedMembers)
	}
	if _, ok := b.priorityOfGang(stray); ok {
		t.Error("a stranger has the priority of the gang")
	}
}

// TestABindingThatOutlivesItsGroup: a member is being bound when the next attempt's
// group is seen. Whether the binding fails or not, nothing is counted twice.
func TestABindingThatOutlivesItsGroup(t *testing.T) {
	for _, fails := range []bool{false, true} {
		b := newBench()
		b.setGroup(groupOf("this", "gang", 1))
		pod := makePod("own", inGroup("gang"), of("this"))
		b.add(pod)
		b.assumeAll(map[types.UID]string{pod.UID: "node-0"})
		b.setGroup(groupOf("next", "gang", 1))
		b.wantCounts(t, "while the member is being bound", 0, 0, 1)
		want := 1
		if fails {
			b.unassume(failedBinding{pod: pod})
			want = 0
		} else {
			b.setPod(makePod("own", inGroup("gang"), of("this"), onNode("node-0")))
		}
		b.setGroup(groupOf("this", "gang", 1))
		b.wantCounts(t, "after the binding", 1-want, want, 0)
	}
}

// TestStrangersAreToldInTime: a Pod that waits in vain is told so, but not before
// its own PodGroup had time to be seen.
func TestStrangersAreToldInTime(t *testing.T) {
	const grace = 5 * time.Second
	b := newBench()
	b.setGroup(groupOf("this", "gang", 1))
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
	b.setPod(marked)
	if pods, _ := b.unmarked(gangName); len(pods) > 0 {
		t.Errorf("%v are told twice", pods)
	}

	adopted := marked.DeepCopy()
	adopted.OwnerReferences = attemptOwner("this")
	b.setPod(adopted)
	b.fail(gangName, groupOf("this", "gang", 1).UID, line.Refusal{Message: "no room"}, time.Second, time.Second)
	if mark := b.markOf(stray); mark.Reason != corev1.PodReasonUnschedulable {
		t.Errorf("a stranger that became a member and finds no room is told %+v", mark)
	}
}

// TestAStrangerWaitsAndIsTold plays it with a scheduler: a Pod with a copied label
// completes no gang and is not placed with one. It runs once the label is gone.
func TestAStrangerWaitsAndIsTold(t *testing.T) {
	stray := makePod("stray", inGroup("gang"))
	w := newWorld(t, all(makeNodes("node", 1, 4), groupOf("this", "gang", 2), makePod("own-0", inGroup("gang"), of("this")), stray)...)
	w.start()
	w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
	w.create(makePod("own-1", inGroup("gang"), of("this")))
	w.eventually("the members are placed", func() bool { return w.placed("own") == 2 })

	pods := w.kube.CoreV1().Pods(testNamespace)
	w.eventually("the stranger is told why it waits", func() bool {
		pod, err := pods.Get(t.Context(), "stray", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		stray = pod
		return news.IsMarked(pod, news.ReasonNotAMember)
	})
	if stray.Spec.NodeName != "" {
		t.Errorf("the stranger is on %s", stray.Spec.NodeName)
	}
	stray.Labels, stray.ResourceVersion = nil, "without label" // a scheduler ignores updates that change nothing
	if _, err := pods.Update(t.Context(), stray, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the Pod without the label is scheduled on its own", func() bool { return w.placed("stray") == 1 })
}
