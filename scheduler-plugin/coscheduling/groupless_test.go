// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
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
	inBubble(t, func(t *testing.T) {
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
	})
}

// TestAPodIsToldThatTheAPIServerServesNoPodGroups: to create one would not help.
func TestAPodIsToldThatTheAPIServerServesNoPodGroups(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeMembers("gang", 1))...)
		w.ownRefusal.Store(notThere(dialect.Own))
		lead := w.standBy()
		w.eventually("the Pod is seen", func() bool { return len(w.known("gang").Members) == 1 })
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
	})
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
