// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// conditionView is what "kubectl wait" sees of the conditions: type=status/reason.
func (w *world) conditionView() string {
	var view []string
	for _, condition := range w.written.Conditions {
		view = append(view, condition.Type+"="+string(condition.Status)+"/"+condition.Reason)
	}
	return strings.Join(view, " ")
}

// TestConditionsOfEveryFramework: each tells by its conditions whether it runs, and
// whether and how it has completed.
func TestConditionsOfEveryFramework(t *testing.T) {
	gang := func() *frameworkv1.Framework {
		f := framework(role("w", 1))
		f.Spec.Gang = &frameworkv1.GangSpec{}
		return f
	}
	tests := map[string]struct {
		framework *frameworkv1.Framework
		story     func(*world)
		want      string
	}{
		"it begins": {
			framework: framework(role("w", 1)), story: func(*world) {},
			want: "Running=False/NoTaskRunning Completed=False/NotCompleted",
		},
		"a task runs": {
			framework: framework(role("w", 1)), story: (*world).runPods,
			want: "Running=True/TasksRunning Completed=False/NotCompleted",
		},
		"it succeeds": {
			framework: framework(role("w", 1)), story: func(w *world) { w.runPods(); w.end("w-0", 0); w.settle() },
			want: "Running=False/NoTaskRunning Completed=True/Succeeded",
		},
		"it fails": {
			framework: framework(role("w", 1)), story: func(w *world) { w.runPods(); w.end("w-0", 1); w.settle() },
			want: "Running=False/NoTaskRunning Completed=True/Failed",
		},
		"it is stopped": {
			framework: framework(role("w", 1)), story: func(w *world) { w.runPods(); w.stop(); w.run(); w.settle() },
			want: "Running=False/NoTaskRunning Completed=True/Failed",
		},
		"a gang waits": {
			framework: gang(), story: func(*world) {},
			want: "Running=False/NoTaskRunning Completed=False/NotCompleted GangScheduled=False/NotYetScheduled",
		},
		"a gang runs": {
			framework: gang(), story: (*world).runPods,
			want: "Running=True/TasksRunning Completed=False/NotCompleted GangScheduled=True/Scheduled",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.framework)
			w.run()
			tc.story(w)
			if diff := cmp.Diff(tc.want, w.conditionView()); diff != "" {
				t.Errorf("unexpected conditions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestConditionCompletedSaysHowAndWhen: since its completion, also where a controller
// of an older version has completed it.
func TestConditionCompletedSaysHowAndWhen(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	w.runPods()
	w.now = w.now.Add(time.Hour)
	w.end("w-0", 7)
	w.settle()
	w.written = w.readBack(w.written)
	w.written.Conditions = nil
	w.crash()
	w.now = w.now.Add(time.Hour)
	w.run()
	got := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionCompleted)
	if got == nil || !strings.Contains(got.Message, "code 7") || !got.LastTransitionTime.Equal(w.written.CompletionTime) {
		t.Errorf("the condition is %+v, want it to tell of code 7 at %v", got, w.written.CompletionTime)
	}
}

// blocks says which creations are refused for now.
func (w *world) blocks(blocks ...Block) {
	w.blocked = []Block{}
	w.run()
	w.blocked = append([]Block{}, blocks...)
}

// TestBlockedTasksAreTold by a condition and an event, once.
func TestBlockedTasksAreTold(t *testing.T) {
	busy := func(*corev1.Pod) error { return apierrors.NewTooManyRequests("busy", 1) }
	quota := Block{Group: "w", Reason: frameworkv1.ReasonQuotaExceeded, Message: "Pod fw-w-0: exceeded quota: q"}
	taken := Block{Group: "v", Reason: frameworkv1.ReasonNameTaken, Message: "the Pod fw-v-0 is somebody else's"}
	group := Block{Group: "", Reason: frameworkv1.ReasonCreationRefused, Message: "PodGroup fw-attempt: timeout"}
	long := Block{Group: "w", Reason: frameworkv1.ReasonCreationRefused, Message: strings.Repeat("ä", 40000)}
	type told struct {
		Reason, Message string
		Events          []Event
	}
	tests := map[string]struct {
		blocks []Block
		want   told
	}{
		"none": {},
		"a quota": {[]Block{quota}, told{
			Reason: "QuotaExceeded", Message: "role w: QuotaExceeded: Pod fw-w-0: exceeded quota: q",
			Events: []Event{{Warning: true, Reason: "QuotaExceeded", Message: "role w: QuotaExceeded: Pod fw-w-0: exceeded quota: q"}},
		}},
		"a PodGroup, and two roles": {[]Block{quota, taken, group}, told{
			Reason: "CreationRefused",
			Message: "CreationRefused: PodGroup fw-attempt: timeout; role v: NameTaken: the Pod fw-v-0 is somebody else's; " +
				"role w: QuotaExceeded: Pod fw-w-0: exceeded quota: q",
			Events: []Event{{Warning: true, Reason: "CreationRefused", Message: "CreationRefused: PodGroup fw-attempt: timeout; " +
				"role v: NameTaken: the Pod fw-v-0 is somebody else's; role w: QuotaExceeded: Pod fw-w-0: exceeded quota: q"}},
		}},
		"a message that is too long": {[]Block{long}, told{
			Reason: "CreationRefused", Message: "role w: CreationRefused: " + strings.Repeat("ä", 128) + "…",
			Events: []Event{{Warning: true, Reason: "CreationRefused", Message: "role w: CreationRefused: " + strings.Repeat("ä", 128) + "…"}},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(role("w", 2), role("v", 1)))
			w.refuse = busy
			w.blocks(tc.blocks...)
			var got told
			for range 3 {
				plan, _ := w.round()
				got.Events = append(got.Events, plan.Events...)
			}
			if condition := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionTasksBlocked); condition != nil {
				got.Reason, got.Message = condition.Reason, condition.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected condition and events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestManyBlocksAreToldInAFewWords: there may be 256 roles.
func TestManyBlocksAreToldInAFewWords(t *testing.T) {
	var roles []frameworkv1.TaskRoleSpec
	var blocks []Block
	for i := range 256 {
		name := "r" + strings.Repeat("x", i%60) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		roles = append(roles, role(name, 1))
		blocks = append(blocks, Block{Group: name, Reason: frameworkv1.ReasonCreationRefused, Message: strings.Repeat("ö", 1000)})
	}
	w := newWorld(t, framework(roles...))
	w.refuse = func(*corev1.Pod) error { return apierrors.NewTooManyRequests("busy", 1) }
	w.blocks(blocks...)
	w.round()
	message := meta.FindStatusCondition(w.written.Conditions, frameworkv1.ConditionTasksBlocked).Message
	if len(message) > 2048 || !strings.HasSuffix(message, "; and 252 more") || !utf8.ValidString(message) {
		t.Errorf("%d bytes, valid %v: %s", len(message), utf8.ValidString(message), message)
	}
}

// TestABlockThatComesAndGoesCostsNoWrites: none of them is urgent, and none is left to
// do when it has gone, or come back, before the write.
func TestABlockThatComesAndGoesCostsNoWrites(t *testing.T) {
	quota := Block{Group: "w", Reason: frameworkv1.ReasonQuotaExceeded, Message: "exceeded quota: q"}
	w := newWorld(t, framework(role("w", 1)))
	w.refuse = func(*corev1.Pod) error { return apierrors.NewTooManyRequests("busy", 1) }
	expect := func(when string, want Persist) {
		t.Helper()
		w.now = w.now.Add(time.Second)
		if plan, _ := w.round(); plan.Persist != want {
			t.Errorf("%s: %v, want %v", when, plan.Persist, want)
		}
	}
	w.blocks()
	w.writeFrom = PersistLater
	w.run()
	w.writeFrom = PersistSoon
	for range 3 {
		w.blocked = []Block{quota}
		expect("it comes", PersistLater)
		w.blocked = []Block{}
		expect("it goes before it was written", PersistNone)
	}
	w.blocked = []Block{quota}
	w.writeFrom = PersistLater
	w.round()
	w.writeFrom = PersistSoon
	expect("it was written", PersistNone)
	for range 3 {
		w.blocked = []Block{}
		expect("it goes", PersistLater)
		w.blocked = []Block{quota}
		expect("it comes back before that was written", PersistNone)
	}
}

// TestABlockIsToldNoMoreWhenNothingIsCreated: the attempt has ended.
func TestABlockIsToldNoMoreWhenNothingIsCreated(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.refuse = func(*corev1.Pod) error { return apierrors.NewTooManyRequests("busy", 1) }
	w.blocks(Block{Group: "w", Reason: frameworkv1.ReasonQuotaExceeded, Message: "exceeded quota: q"})
	w.round()
	w.stop()
	w.round()
	w.round()
	if got, want := w.conditionView(), "Running=False/NoTaskRunning Completed=False/NotCompleted"; got != want {
		t.Errorf("the conditions are %s, want %s", got, want)
	}
}

// TestConditionsOfOthersSurvive: those of other controllers are theirs, whether they
// come, change or go.
func TestConditionsOfOthersSurvive(t *testing.T) {
	foreign := func(status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: "Billed", Status: status, Reason: "Meter", LastTransitionTime: metav1.Now().Rfc3339Copy()}
	}
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	w.runPods()
	// meter writes a condition, of which the controller hears by its next look.
	meter := func(conditions ...metav1.Condition) {
		stored := w.readBack(w.written)
		stored.Conditions = slices.DeleteFunc(stored.Conditions, func(c metav1.Condition) bool { return c.Type == "Billed" })
		stored.Conditions = append(conditions, stored.Conditions...)
		w.written = stored
		w.controller.persisted, w.controller.base = stored, stored
		w.run()
	}
	of := func() string {
		condition := meta.FindStatusCondition(w.written.Conditions, "Billed")
		if condition == nil {
			return ""
		}
		return string(condition.Status)
	}
	for _, status := range []metav1.ConditionStatus{metav1.ConditionFalse, metav1.ConditionTrue} {
		meter(foreign(status))
		w.setPhase("fw-w-0", corev1.PodPending, 0)
		w.run()
		w.runPods()
		if got := of(); got != string(status) {
			t.Errorf("the condition of another controller is %q, want %q", got, status)
		}
	}
	meter()
	w.end("w-0", 0)
	w.settle()
	if got := of(); got != "" {
		t.Errorf("the condition of another controller is %q, want none any more", got)
	}
	if got, want := w.conditionView(), "Running=False/NoTaskRunning Completed=True/Succeeded"; got != want {
		t.Errorf("the conditions are %s, want %s", got, want)
	}
}
