// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// scheduledCondition is what the condition PodScheduled of a Pod says, empty for
// nothing.
func (w *world) scheduledCondition(name string) corev1.PodCondition {
	w.t.Helper()
	pod, err := w.kube.CoreV1().Pods(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c
		}
	}
	return corev1.PodCondition{}
}

// TestAPodThatNamesNoPodGroupIsTold: it waits, and says for which group. When the
// group comes, it is told what is missing now, and placed when that has come.
func TestAPodThatNamesNoPodGroupIsTold(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makeMembers("gang", 1))...)
	w.start()
	w.eventually("the Pod is told", func() bool { return w.scheduledCondition("gang-0").Reason == news.ReasonNoGroup })
	got := w.scheduledCondition("gang-0")
	if want := "there is no PodGroup gang in the namespace ns, and the Pod waits for it"; got.Status != corev1.ConditionFalse || got.Message != want {
		t.Errorf("the Pod is told %s, %q; want False, %q", got.Status, got.Message, want)
	}
	w.eventually("an event says the same", func() bool { return w.recorded("FailedScheduling "+got.Message) == 1 })

	w.create(makeGroup("gang", 2))
	w.eventually("the Pod is told that its gang is not complete", func() bool { return w.scheduledCondition("gang-0").Reason == news.ReasonIncomplete })
	w.create(makePod("gang-1", inGroup("gang")))
	w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	if n := w.patches("pods"); n != 2 {
		t.Errorf("Pods were told something %d times, want twice", n)
	}
	if n := w.recorded("FailedScheduling"); n != 1 {
		t.Errorf("there are %d events, want one", n)
	}
}

// TestAPodIsToldThatTheAPIServerServesNoPodGroups: to create one would not help.
func TestAPodIsToldThatTheAPIServerServesNoPodGroups(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 4), makeMembers("gang", 1))...)
	w.lock.Resources = nil
	lead := w.standBy()
	w.eventually("the Pod is seen", func() bool { return w.sees("gang") })
	if n := w.patches("pods"); n != 0 {
		t.Errorf("a scheduler that does not lead told Pods something %d times", n)
	}
	lead()
	w.eventually("the Pod is told", func() bool { return w.scheduledCondition("gang-0").Reason == news.ReasonNotServed })
	if got := w.scheduledCondition("gang-0").Message; !strings.Contains(got, "podgroups.scheduling.lockstep.dev is missing") {
		t.Errorf("the Pod is told %q, want the name of the CustomResourceDefinition that is missing", got)
	}
	w.create(makePod("late-0", inGroup("late")))
	w.eventually("a Pod that comes later is told", func() bool { return w.scheduledCondition("late-0").Reason == news.ReasonNotServed })
}

// sees says whether the scheduler knows a gang.
func (w *world) sees(gang string) bool {
	tracker := w.tracker()
	tracker.mu.RLock()
	defer tracker.mu.RUnlock()
	return tracker.gangs[gangNamed(gang)] != nil
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
	b.setPod(marked)
	want("once it was told", nil, 0)
	b.setPod(waits)

	b.setGroup(makeGroup("gang", 3))
	want("while there is a group", nil, 0)
	clear(b.report)
	b.deleteGroup(makeGroup("gang", 3))
	if _, asked := b.report[gangName]; !asked {
		t.Error("no report is asked for when the group is deleted")
	}
	want("when the group is deleted", nil, grace)
}

// recorded is how many events have been recorded that begin so, without their type.
func (w *world) recorded(prefix string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		select {
		case event := <-w.recorder.Events:
			_, event, _ = strings.Cut(event, " ")
			w.events = append(w.events, event)
			continue
		default:
		}
		break
	}
	n := 0
	for _, event := range w.events {
		if strings.HasPrefix(event, prefix) {
			n++
		}
	}
	return n
}
