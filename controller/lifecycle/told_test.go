// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TestEachTurnInALifeIsTold leads a Framework through two retries and a rescale, and reads its events.
func TestEachTurnInALifeIsTold(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.RetryPolicy.MaxRetryCount = 2
	f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy = frameworkv1.CompletionPolicySpec{MinFailedTaskCount: ptr.To[int32](1), MinSucceededTaskCount: ptr.To[int32](-1)}
	w := newWorld(t, f)
	var told []string
	w.onEvent = func(event Event) {
		message := event.Message
		if event.Reason == ReasonRetryScheduled {
			message, _, _ = strings.Cut(message, " in ") // by chance
		}
		told = append(told, event.Reason+": "+message)
	}
	w.run()
	w.runPods()
	w.editNow(func(spec *frameworkv1.FrameworkSpec) { spec.TaskRoles[0].TaskNumber = 3 })
	w.runPods()
	for range 2 {
		w.end("w-0", 1)
		w.settle()
		w.awaitPod("fw-w-2")
		w.runPods()
	}
	for _, task := range []string{"w-0", "w-1", "w-2"} {
		w.end(task, 0)
	}
	w.settle()
	// The first time it may not wait at all.
	told = slices.DeleteFunc(told, func(event string) bool { return event == "RetryScheduled: Attempt 0 will be retried" })
	const code1 = `code 1, ContainerUnrecognizedFailed: Pod failed: PodPattern unmatched: {"containers":[{"name":"main","code":1}]}`
	const code0 = "code 0, Succeeded: CompletedTaskCount 3 reached TotalTaskCount 3"
	want := []string{
		"AttemptStarted: Attempt 0 has started",
		"AttemptRunning: Attempt 0 is running",
		"Rescaled: Rescaled attempt 0: 1 tasks added, 0 tasks to be deleted",
		"TaskFailed: Task w[0] attempt 0 failed with " + code1,
		"AttemptCompleted: Attempt 0 completed with " + code1,
		"AttemptStarted: Attempt 1 has started",
		"AttemptRunning: Attempt 1 is running",
		"TaskFailed: Task w[0] attempt 0 failed with " + code1,
		"AttemptCompleted: Attempt 1 completed with " + code1,
		"RetryScheduled: Attempt 1 will be retried",
		"AttemptStarted: Attempt 2 has started",
		"AttemptRunning: Attempt 2 is running",
		"AttemptCompleted: Attempt 2 completed with " + code0,
		"Completed: Completed with " + code0,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("unexpected events (-want +got):\n%s", diff)
	}
}
