// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// waitsFor is a Pod on a node of which a container waits.
func (w *world) waitsFor(name, reason string) {
	pod := w.pods[name]
	pod.Spec.NodeName = "node"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "side", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
		{Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}},
	}
	w.podChanged(pod)
	w.run()
}

// after lets time pass, second by second.
func (w *world) after(span time.Duration) {
	for until := w.now.Add(span); w.now.Before(until); {
		w.now = w.now.Add(time.Second)
		w.run()
	}
}

// waitsOf are the reasons that the status has, by Pod.
func waitsOf(status *frameworkv1.FrameworkStatus) map[string]string {
	waits := map[string]string{}
	for _, task := range tasksByUID(status) {
		if waiting := task.AttemptStatus.Waiting; waiting != nil {
			waits[task.AttemptStatus.PodName] = waiting.Reason
		}
	}
	return waits
}

// TestTheStatusSaysForWhatTasksWait, by task and in all.
func TestTheStatusSaysForWhatTasksWait(t *testing.T) {
	w := newWorld(t, framework(role("w", 5)))
	w.run()
	begun := metav1.NewTime(w.now)
	w.waitsFor("fw-w-0", "ImagePullBackOff")
	w.waitsFor("fw-w-1", "CreateContainerConfigError")
	w.waitsFor("fw-w-2", "ImagePullBackOff")
	w.pods["fw-w-3"].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable"}}
	w.podChanged(w.pods["fw-w-3"])
	w.run()
	if waits := waitsOf(w.written); len(waits) > 0 {
		t.Errorf("what Pods tell at once is written: %v", waits)
	}
	w.after(waitingGrace)
	want := map[string]string{"fw-w-0": "ImagePullBackOff", "fw-w-1": "CreateContainerConfigError",
		"fw-w-2": "ImagePullBackOff", "fw-w-3": "Unschedulable", "fw-w-4": "NotYetScheduled"}
	if diff := cmp.Diff(want, waitsOf(w.written)); diff != "" {
		t.Errorf("tasks wait (-want +got):\n%s", diff)
	}
	counts := []frameworkv1.WaitingCount{{Reason: "ImagePullBackOff", Tasks: 2, Since: begun},
		{Reason: "CreateContainerConfigError", Tasks: 1, Since: begun}, {Reason: "NotYetScheduled", Tasks: 1, Since: begun},
		{Reason: "Unschedulable", Tasks: 1, Since: begun}}
	if diff := cmp.Diff(counts, w.written.Waiting); diff != "" {
		t.Errorf("the counts (-want +got):\n%s", diff)
	}
	w.runPods()
	if waits := waitsOf(w.written); len(waits) > 0 || w.written.Waiting != nil {
		t.Errorf("all run, and wait for %v, %v", waits, w.written.Waiting)
	}
}

// TestAReasonThatFlapsIsNotWrittenEachTime: an hour of a new reason each second is 61 of them
// in the status, and as many writes.
func TestAReasonThatFlapsIsNotWrittenEachTime(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	writes := 0
	w.onWrite = func(before, after *frameworkv1.FrameworkStatus) { writes++ }
	for second := range 3600 {
		w.waitsFor("fw-w-0", fmt.Sprint("Reason", second))
		w.after(time.Second)
		if second%600 == 599 {
			w.crash() // The rule does not rest on what a controller remembers.
		}
	}
	// The first write is that of the node's name.
	if writes < 55 || writes > 62 {
		t.Errorf("the status was written %d times in an hour, want once a minute", writes)
	}
}

// TestAWaitThatIsOverIsTold a minute after its reason was, at the latest.
func TestAWaitThatIsOverIsTold(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	w.waitsFor("fw-w-0", "ErrImagePull")
	w.after(time.Minute - time.Second)
	w.waitsFor("fw-w-0", "PodInitializing")
	if got := waitsOf(w.written)["fw-w-0"]; got != "ErrImagePull" {
		t.Errorf("the reason is %q within its minute", got)
	}
	w.after(time.Second)
	if got := waitsOf(w.written)["fw-w-0"]; got != "ContainerCreating" && got != "PodInitializing" {
		t.Errorf("the reason is %q after its minute", got)
	}
}

// TestManyReasonsAreFewCounts: who writes Pods' reasons does not make the status large.
func TestManyReasonsAreFewCounts(t *testing.T) {
	w := newWorld(t, framework(role("w", 12)))
	w.run()
	for i := range 12 {
		w.waitsFor(fmt.Sprintf("fw-w-%d", i), fmt.Sprintf("Reason%02d\x01<%0100d", i, 0))
	}
	w.after(waitingGrace)
	if last := w.written.Waiting[len(w.written.Waiting)-1]; len(w.written.Waiting) != 9 || last.Reason != frameworkv1.ReasonOther || last.Tasks != 4 {
		t.Errorf("there are %d counts, the last is %+v, want 9, and 4 others", len(w.written.Waiting), last)
	}
	for name, reason := range waitsOf(w.written) {
		if len(reason) != maxWaitingReason {
			t.Errorf("%s waits for %q, of %d bytes, want %d", name, reason, len(reason), maxWaitingReason)
		}
	}
}

// TestTheControllerWakesForAWait: it looks again when a reason may be taken in, though nothing
// happens, and not before.
func TestTheControllerWakesForAWait(t *testing.T) {
	w := newWorld(t, framework(role("w", 1)))
	w.run()
	begun := w.now
	w.waitsFor("fw-w-0", "ErrImagePull")
	if at := w.run().WakeAt; !at.Equal(begun.Add(waitingGrace)) {
		t.Errorf("it looks again at %v, want at the end of the grace", at.Sub(begun))
	}
	w.now = begun.Add(waitingGrace)
	w.waitsFor("fw-w-0", "ErrImagePull")
	if at := w.run().WakeAt; !at.IsZero() {
		t.Errorf("it looks again at %v for nothing", at.Sub(begun))
	}
	w.waitsFor("fw-w-0", "ImagePullBackOff")
	if at := w.run().WakeAt; !at.Equal(begun.Add(waitingHold)) {
		t.Errorf("it looks again at %v, want when the reason has stayed for a minute", at.Sub(begun))
	}
}
