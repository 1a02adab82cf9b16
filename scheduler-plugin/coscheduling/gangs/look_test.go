// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestWhatWasLookedAtDoesNotChange: it is told of a gang without the lock of Gangs.
func TestWhatWasLookedAtDoesNotChange(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	b.add(makePod("a", inGroup("gang"), inRole("worker")))
	before, _ := b.Look(gangName)
	b.add(makePod("b", inGroup("gang"), inRole("worker")), makePod("c", inGroup("gang"), inRole("worker"), onNode("node-0")))
	if before.Waiting.Roles["worker"] != 1 || before.Placed.Roles["worker"] != 0 || len(before.Pods) != 1 {
		t.Errorf("what was looked at shows members that have come since: %v wait, %v are placed, of %d Pods",
			before.Waiting, before.Placed, len(before.Pods))
	}
}

// TestWhoLooksSeesWhatWaits: members and strangers that would wait, and nobody else.
func TestWhoLooksSeesWhatWaits(t *testing.T) {
	b := newBench()
	b.SetGroup(groupOf("this", "gang", 1))
	own, stray := makePod("own", inGroup("gang"), of("this")), makePod("stray", inGroup("gang"))
	placed, strayPlaced := makePod("placed", inGroup("gang"), of("this"), onNode("node-0")), makePod("stray-placed", inGroup("gang"), onNode("node-0"))
	b.add(own, stray, placed, strayPlaced)
	gang, _ := b.Look(gangName)
	got := map[string]bool{}
	for _, p := range gang.Pods {
		got[p.Pod.Name] = p.Stranger
	}
	if diff := cmp.Diff(map[string]bool{"own": false, "stray": true}, got); diff != "" {
		t.Errorf("Pods that wait, and whether they are strangers (-want, +got):\n%s", diff)
	}
	for name, want := range map[string]bool{"own": true, "stray": true, "placed": false, "stray-placed": false, "nobody": false} {
		if _, pod, ok := b.LookAt(gangName, makePod(name).UID); ok != want || ok && pod.Stranger != got[name] {
			t.Errorf("%s waits: %t, as a stranger: %t", name, ok, pod.Stranger)
		}
	}
}

// TestMembersThatNameAnotherSchedulerAreCountedByItsName, unless the gang has its minimum without them.
func TestMembersThatNameAnotherSchedulerAreCountedByItsName(t *testing.T) {
	b := newBench()
	b.SetGroup(makeGroup("gang", 2))
	misspelt := func(w *schedulertesting.PodWrapper) { w.SchedulerName("lockstep-sheduler") }
	b.add(makePod("a", inGroup("gang"), misspelt), makePod("b", inGroup("gang"), misspelt), makePod("c", inGroup("gang")))
	gang, _ := b.Look(gangName)
	if diff := cmp.Diff(map[string]int{"lockstep-sheduler": 2}, gang.Unserved); diff != "" {
		t.Errorf("members of other schedulers (-want, +got):\n%s", diff)
	}
	b.add(makePod("d", inGroup("gang")))
	if gang, _ := b.Look(gangName); len(gang.Unserved) > 0 {
		t.Errorf("the gang has its minimum, and is told of %v", gang.Unserved)
	}
}

// TestGangsThatWaitAreCountedByReason: by that of their condition, or by why room is kept.
func TestGangsThatWaitAreCountedByReason(t *testing.T) {
	b := newBench()
	for name, least := range map[string]int32{"incomplete": 2, "fresh": 1, "refused": 1, "preempts": 1, "starves": 1, "unready": 1} {
		group := makeGroup(name, least)
		b.SetGroup(group)
		b.add(makePod(name+"-0", inGroup(name)))
		if name != "incomplete" && name != "fresh" {
			b.fail(gangNamed(name), group.UID, queue.Refusal{Message: "no room", Unready: name == "unready"}, time.Minute, time.Minute)
		}
	}
	b.SetKept(gangNamed("preempts"), b.gangs[gangNamed("preempts")].group.UID, news.Preempting, nil)
	b.SetKept(gangNamed("starves"), b.gangs[gangNamed("starves")].group.UID, news.Reserved, nil)
	want := map[string]int{"NotEnoughTasks": 2, "NotEnoughResources": 1, news.Preempting: 1, news.Reserved: 1}
	if diff := cmp.Diff(want, b.CountWaiting()); diff != "" {
		t.Errorf("gangs that wait (-want, +got):\n%s", diff)
	}
}

// TestWhoIsToldThatItsPodGroupIsMissing, and when: neither before whoever makes the
// Pods has had time to make the group, nor twice, nor whoever does not wait for it.
func TestWhoIsToldThatItsPodGroupIsMissing(t *testing.T) {
	const grace = 3 * time.Second
	b := newBench()
	waits := makePod("waits", inGroup("gang"))
	b.add(waits, makePod("placed", inGroup("gang"), onNode("node-0")),
		makePod("gated", inGroup("gang"), func(w *schedulertesting.PodWrapper) { w.SchedulingGates([]string{"g"}) }),
		makePod("elsewhere", inGroup("gang"), func(w *schedulertesting.PodWrapper) { w.SchedulerName("other") }))
	want := func(when string, want []types.UID, wantLater time.Duration) {
		t.Helper()
		pods, later := b.unmarked(gangName)
		if diff := cmp.Diff(want, pods); diff != "" || later != wantLater {
			t.Errorf("%s others are told in %v, want %v; told are (-want, +got):\n%s", when, later, wantLater, diff)
		}
	}
	b.time = b.time.Add(time.Second)
	want("after a second", nil, grace-time.Second)
	b.time = b.time.Add(grace - time.Second)
	want("after the grace", []types.UID{waits.UID}, 0)

	marked := waits.DeepCopy()
	marked.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: news.ReasonNoGroup}}
	b.SetPod(marked)
	want("once it was told", nil, 0)
	b.SetPod(waits)

	b.SetGroup(makeGroup("gang", 3))
	want("while there is a group", nil, 0)
	clear(b.drained().report)
	b.DeleteGroup(makeGroup("gang", 3))
	if _, asked := b.drained().report[gangName]; !asked {
		t.Error("no report is asked for when the group is deleted")
	}
	want("when the group is deleted", nil, grace)
}

// TestAGroupThatSomebodyElseHasWrittenIsLookedAt, and none that shows what this scheduler has written.
func TestAGroupThatSomebodyElseHasWrittenIsLookedAt(t *testing.T) {
	b := newBench()
	group := makeGroup("gang", 1)
	b.SetGroup(group)
	said := func(reason string) []schedulingv1alpha1.PodGroupCondition {
		return []schedulingv1alpha1.PodGroupCondition{{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionTrue, Reason: reason}}
	}
	b.Remember(dialect.FromOwn(group), news.Record{Conditions: said("ours")})
	for _, tc := range []struct {
		reason string
		want   bool
	}{{"ours", false}, {"theirs", true}, {"theirs", false}, {"ours", false}} {
		delete(b.drained().report, gangName)
		group = group.DeepCopy()
		group.Status.Conditions, group.Status.Running = said(tc.reason), group.Status.Running+1
		b.SetGroup(group)
		if _, asked := b.drained().report[gangName]; asked != tc.want {
			t.Errorf("when it says %s it is looked at: %t, want %t", tc.reason, asked, tc.want)
		}
	}
}
