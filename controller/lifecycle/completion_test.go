// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestEvaluateCompletion(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	// spec has thresholds that are off at -1.
	spec := func(name string, number, minFailed, minSucceeded int32) frameworkv1.TaskRoleSpec {
		return frameworkv1.TaskRoleSpec{Name: name, TaskNumber: number, FrameworkAttemptCompletionPolicy: frameworkv1.CompletionPolicySpec{
			MinFailedTaskCount: ptr.To(minFailed), MinSucceededTaskCount: ptr.To(minSucceeded),
		}}
	}
	running := &frameworkv1.TaskStatus{State: frameworkv1.TaskAttemptRunning}
	completed := func(code frameworkv1.CompletionCode, second int) *frameworkv1.TaskStatus {
		return &frameworkv1.TaskStatus{
			State:          frameworkv1.TaskCompleted,
			CompletionTime: ptr.To(metav1.NewTime(start.Add(time.Duration(second) * time.Second))),
			AttemptStatus:  frameworkv1.TaskAttemptStatus{CompletionStatus: taskCompletion(code, "why")},
		}
	}
	marked := func(task *frameworkv1.TaskStatus) *frameworkv1.TaskStatus {
		task.DeletionPending = true
		return task
	}
	attemptEnded := func(task *frameworkv1.TaskStatus) *frameworkv1.TaskStatus {
		task.State, task.CompletionTime = frameworkv1.TaskAttemptCompleted, nil
		return task
	}
	status := func(name string, tasks ...*frameworkv1.TaskStatus) *frameworkv1.TaskRoleStatus {
		role := &frameworkv1.TaskRoleStatus{Name: name}
		for i, task := range tasks {
			indexed := *task
			indexed.Index = int32(i)
			role.TaskStatuses = append(role.TaskStatuses, &indexed)
		}
		return role
	}
	end := func(code frameworkv1.CompletionCode, diagnostics, role string, index int32, message string) *frameworkv1.FrameworkAttemptCompletionStatus {
		completion := attemptCompletion(code, diagnostics)
		completion.Trigger = &frameworkv1.CompletionPolicyTriggerStatus{Message: message, TaskRoleName: role, TaskIndex: index}
		return completion
	}
	const (
		failed = frameworkv1.CodeContainerPermanentFailed
		other  = frameworkv1.CodeContainerTransientFailed
		ok     = frameworkv1.CodeSucceeded
		oneF   = "FailedTaskCount 1 reached MinFailedTaskCount 1 in the TaskRole"
		oneS   = "SucceededTaskCount 1 reached MinSucceededTaskCount 1 in the TaskRole"
	)

	tests := map[string]struct {
		specs    []frameworkv1.TaskRoleSpec
		statuses []*frameworkv1.TaskRoleStatus
		want     *frameworkv1.FrameworkAttemptCompletionStatus
	}{
		"nothing has completed": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 2, 1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", running, running)},
		},
		"without tasks it never completes": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 0, 1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w")},
		},
		"without a policy, one failure completes it": {
			specs:    []frameworkv1.TaskRoleSpec{{Name: "w", TaskNumber: 2}},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", running, completed(failed, 1))},
			want:     end(failed, "why", "w", 1, oneF),
		},
		"without a policy, one success does not": {
			specs:    []frameworkv1.TaskRoleSpec{{Name: "w", TaskNumber: 2}},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", running, completed(ok, 1))},
		},
		"a threshold above what has failed does nothing": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 3, 2, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(failed, 1), running, running)},
		},
		"the task that reaches the threshold triggers, whatever its index": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 3, 2, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(other, 3), completed(failed, 1), completed(failed, 2))},
			want:     end(failed, "why", "w", 2, "FailedTaskCount 3 reached MinFailedTaskCount 2 in the TaskRole"),
		},
		"the earliest trigger over all roles wins": {
			specs: []frameworkv1.TaskRoleSpec{spec("a", 1, 1, -1), spec("b", 1, -1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{
				status("a", completed(failed, 2)), status("b", completed(ok, 1)),
			},
			want: end(ok, "why", "b", 0, oneS),
		},
		"of equal triggers the first role in spec wins, whatever the order of the status": {
			specs: []frameworkv1.TaskRoleSpec{spec("a", 1, 1, -1), spec("b", 1, -1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{
				status("b", completed(ok, 1)), status("a", completed(failed, 1)),
			},
			want: end(failed, "why", "a", 0, oneF),
		},
		"of equal triggers in a role the failure wins": {
			specs:    []frameworkv1.TaskRoleSpec{spec("a", 2, 1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("a", completed(ok, 1), completed(failed, 1))},
			want:     end(failed, "why", "a", 1, oneF),
		},
		"of tasks that failed together the lowest index comes first": {
			specs:    []frameworkv1.TaskRoleSpec{spec("a", 3, 1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("a", running, completed(failed, 1), completed(other, 1))},
			want:     end(failed, "why", "a", 1, "FailedTaskCount 2 reached MinFailedTaskCount 1 in the TaskRole"),
		},
		"without thresholds, all failed is a success": {
			specs: []frameworkv1.TaskRoleSpec{spec("a", 1, -1, -1), spec("b", 1, 0, 0)},
			statuses: []*frameworkv1.TaskRoleStatus{
				status("a", completed(failed, 2)), status("b", completed(failed, 1)),
			},
			want: end(ok, "CompletedTaskCount 2 reached TotalTaskCount 2", "a", 0, "CompletedTaskCount 2 reached TotalTaskCount 2"),
		},
		"the last task to complete ends it all, and of equals the first": {
			specs: []frameworkv1.TaskRoleSpec{spec("a", 2, -1, -1), spec("b", 1, -1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{
				status("a", completed(ok, 1), completed(failed, 2)), status("b", completed(ok, 2)),
			},
			want: end(ok, "CompletedTaskCount 3 reached TotalTaskCount 3", "a", 1, "CompletedTaskCount 3 reached TotalTaskCount 3"),
		},
		"tasks that a rescale deletes don't count": {
			specs: []frameworkv1.TaskRoleSpec{spec("a", 1, 1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{
				status("a", running, marked(completed(frameworkv1.CodeDeleteTaskRequested, 1))),
			},
		},
		"a task that is not yet replaced keeps the attempt going": {
			specs: []frameworkv1.TaskRoleSpec{spec("a", 2, -1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{
				status("a", completed(ok, 1), marked(completed(frameworkv1.CodeDeleteTaskRequested, 1))),
			},
		},
		"a threshold of successes counts them in the order in which they came": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 4, 1, 2)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(ok, 3), running, completed(ok, 1), completed(ok, 2))},
			want:     end(ok, "why", "w", 3, "SucceededTaskCount 3 reached MinSucceededTaskCount 2 in the TaskRole"),
		},
		"a threshold above what has succeeded does nothing": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 3, 1, 2)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(ok, 1), running, running)},
		},
		"a threshold of 0 is off, like one of -1": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 3, 0, 0)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(ok, 1), completed(failed, 1), running)},
		},
		"the failures of one role don't count in another": {
			specs:    []frameworkv1.TaskRoleSpec{spec("a", 2, 2, -1), spec("b", 2, 2, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("a", completed(failed, 1), running), status("b", completed(failed, 2), running)},
		},
		"a threshold goes before the end of all tasks, though that came later": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 2, 1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(failed, 1), completed(ok, 2))},
			want:     end(failed, "why", "w", 0, oneF),
		},
		"an attempt of a task that has ended, but may be retried, does not count": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 1, 1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", attemptEnded(completed(failed, 1)))},
		},
		"when all tasks that are left have completed, those that a rescale deletes are not waited for": {
			specs:    []frameworkv1.TaskRoleSpec{spec("w", 1, 1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("w", completed(ok, 1), marked(&frameworkv1.TaskStatus{State: frameworkv1.TaskAttemptRunning}))},
			want:     end(ok, "CompletedTaskCount 1 reached TotalTaskCount 1", "w", 0, "CompletedTaskCount 1 reached TotalTaskCount 1"),
		},
		"a role that has left the spec does not count": {
			specs:    []frameworkv1.TaskRoleSpec{spec("a", 1, 1, 1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("a", running), status("gone", completed(failed, 1))},
		},
		"a role that has just come to the spec is waited for": {
			specs:    []frameworkv1.TaskRoleSpec{spec("a", 1, 1, -1), spec("new", 1, 1, -1)},
			statuses: []*frameworkv1.TaskRoleStatus{status("a", completed(ok, 1))},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := evaluateCompletion(tc.specs, tc.statuses)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected completion (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCompletionOfAnAttempt is what the policy does to an attempt whose tasks and
// spec change while it is decided.
func TestCompletionOfAnAttempt(t *testing.T) {
	lenient := func(tasks int32) *frameworkv1.Framework {
		f := framework(role("w", tasks))
		f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To(tasks)
		return f
	}
	tests := map[string]struct {
		framework *frameworkv1.Framework
		story     func(*world)
		want      string
	}{
		"a threshold that the user lowers takes what has failed before": {
			framework: lenient(3),
			story: func(w *world) {
				w.end("w-1", 7)
				w.now = w.now.Add(time.Second)
				w.end("w-0", 8)
				w.edit(func(f *frameworkv1.Framework) {
					f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1)
				})
			},
			want: "F#0 Completed(7), w-0#0 Completed(8), w-1#0 Completed(7), w-2#0 Completed(-220)",
		},
		"tasks that the user scales away leave all others completed": {
			framework: lenient(2),
			story: func(w *world) {
				w.end("w-0", 7)
				w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles[0].TaskNumber = 1 })
			},
			want: "F#0 Completed(0), w-0#0 Completed(7), w-1#0 Completed(-230) marked",
		},
		"a task that the end cut off keeps that code, though its Pod then succeeds": {
			framework: framework(role("w", 2)),
			story: func(w *world) {
				w.end("w-0", 7)
				w.setPhase("fw-w-1", corev1.PodSucceeded, 0)
			},
			want: "F#0 Completed(7), w-0#0 Completed(7), w-1#0 Completed(-220)",
		},
		"an end is not decided anew by what fails after it": {
			framework: framework(role("w", 2)),
			story: func(w *world) {
				w.end("w-1", 7)
				w.setPhase("fw-w-0", corev1.PodFailed, 8)
			},
			want: "F#0 Completed(7), w-0#0 Completed(-220), w-1#0 Completed(7)",
		},
		"a stop goes before a failure that is seen together with it": {
			framework: framework(role("w", 1)),
			story: func(w *world) {
				w.setPhase("fw-w-0", corev1.PodFailed, 7)
				w.run()
				w.endPod("fw-w-0")
				w.edit(func(f *frameworkv1.Framework) { f.Spec.ExecutionType = frameworkv1.ExecutionStop })
			},
			want: "F#0 Completed(-210), w-0#0 Completed(7)",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.framework)
			w.run()
			w.runPods()
			tc.story(w)
			w.run()
			w.settle()
			if diff := cmp.Diff(tc.want, transcript(w.readBack(w.written))); diff != "" {
				t.Errorf("unexpected status at the end (-want +got):\n%s", diff)
			}
		})
	}
}
