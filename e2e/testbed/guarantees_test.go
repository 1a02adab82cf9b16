// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// status is a write of the status of Framework fw, in one of its attempts, with
// tasks in the order of their UIDs.
func status(state frameworkv1.FrameworkState, attempt int32, tasks ...*frameworkv1.TaskStatus) event {
	return event{framework: &frameworkv1.Framework{
		ObjectMeta: metav1.ObjectMeta{Name: "fw", UID: "fw"},
		Status: &frameworkv1.FrameworkStatus{
			State:             state,
			RetryPolicyStatus: frameworkv1.RetryPolicyStatus{TotalRetriedCount: attempt},
			AttemptStatus: frameworkv1.FrameworkAttemptStatus{
				ID:               attempt,
				TaskRoleStatuses: []*frameworkv1.TaskRoleStatus{{Name: "a", TaskStatuses: tasks}},
			},
		},
	}}
}

func task(uid types.UID, state frameworkv1.TaskState, attempt int32) *frameworkv1.TaskStatus {
	return &frameworkv1.TaskStatus{
		InstanceUID: uid, State: state,
		AttemptStatus: frameworkv1.TaskAttemptStatus{ID: attempt, PodName: "fw-a-0"},
	}
}

// pod is a Pod of task t that was made for its attempt, in an attempt of the
// Framework.
func pod(uid types.UID, phase corev1.PodPhase, frameworkAttempt, taskAttempt int) event {
	return event{pod: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fw-a-0", UID: uid, Annotations: map[string]string{
			frameworkv1.KeyFrameworkName: "fw", frameworkv1.KeyFrameworkUID: "fw", frameworkv1.KeyTaskUID: "t",
			frameworkv1.KeyConfigMapUID:       "cm" + strconv.Itoa(frameworkAttempt),
			frameworkv1.KeyFrameworkAttemptID: strconv.Itoa(frameworkAttempt),
			frameworkv1.KeyTaskAttemptID:      strconv.Itoa(taskAttempt),
		}},
		Status: corev1.PodStatus{Phase: phase},
	}}
}

func gone(e event) event {
	e.gone = true
	return e
}

func with(e event, change func(*frameworkv1.FrameworkStatus)) event {
	change(e.framework.Status)
	return e
}

func other(e event, name string) event {
	e.pod.Name = name
	return e
}

func TestBrokenGuarantees(t *testing.T) {
	const running, attemptCompleted = frameworkv1.FrameworkAttemptRunning, frameworkv1.FrameworkAttemptCompleted
	ended := func(code frameworkv1.CompletionCode) func(*frameworkv1.FrameworkStatus) {
		return func(s *frameworkv1.FrameworkStatus) {
			s.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{
				CompletionStatus: frameworkv1.CompletionStatus{Code: code},
			}
		}
	}
	at := func(second int64) func(*frameworkv1.FrameworkStatus) {
		return func(s *frameworkv1.FrameworkStatus) { s.TransitionTime = metav1.NewTime(time.Unix(second, 0)) }
	}
	runs := status(running, 0, task("t", frameworkv1.TaskAttemptRunning, 0))
	marked := task("t", frameworkv1.TaskAttemptRunning, 0)
	marked.DeletionPending = true

	for name, tc := range map[string]struct {
		events []event
		want   string // in the only complaint; empty if there is none
	}{
		"a task runs, ends and is retried": {events: []event{
			runs, pod("1", corev1.PodPending, 0, 0), pod("1", corev1.PodRunning, 0, 0), gone(pod("1", corev1.PodFailed, 0, 0)),
			status(running, 0, task("t", frameworkv1.TaskAttemptCompleted, 0)),
			status(running, 0, task("t", frameworkv1.TaskAttemptCreationPending, 1)), pod("2", corev1.PodPending, 0, 1),
		}},
		"a Pod that has ended may stay": {events: []event{
			runs, pod("1", corev1.PodSucceeded, 0, 0), status(running, 0, task("t", frameworkv1.TaskCompleted, 0)),
		}},
		"a Pod of a completed task": {
			events: []event{runs, pod("1", corev1.PodRunning, 0, 0), status(running, 0, task("t", frameworkv1.TaskCompleted, 0))},
			want:   "its task is Completed",
		},
		"a Pod of a task that is gone": {
			events: []event{status(running, 0, task("u", frameworkv1.TaskAttemptRunning, 0)), pod("1", corev1.PodRunning, 0, 0)},
			want:   "the status has no task t",
		},
		"a Pod of a completed attempt": {
			events: []event{runs, pod("1", corev1.PodRunning, 0, 0), status(attemptCompleted, 0, task("t", frameworkv1.TaskAttemptRunning, 0))},
			want:   "Pod fw-a-0 runs, and fw: AttemptCompleted",
		},
		"a Pod of a Framework that is gone": {
			events: []event{runs, pod("1", corev1.PodRunning, 0, 0), gone(runs)},
			want:   "Framework fw is gone",
		},
		"two attempts at once": {
			events: []event{runs, pod("1", corev1.PodRunning, 0, 0), other(pod("2", corev1.PodPending, 1, 0), "fw-a-1")},
			want:   "2 attempts of Framework fw run at once",
		},
		"a Pod for an attempt of the task that is over": {
			events: []event{runs, pod("1", corev1.PodRunning, 0, 1), gone(pod("1", corev1.PodFailed, 0, 1)), pod("2", corev1.PodPending, 0, 0)},
			want:   "FC_TASK_ATTEMPT_ID=0",
		},
		"an attempt that comes again": {
			events: []event{status(attemptCompleted, 1), status(running, 0)},
			want:   "went back from attempt 1",
		},
		"an attempt that begins before the last one is over": {
			events: []event{status(running, 0), status(running, 1)},
			want:   "was AttemptRunning when its attempt 1 began",
		},
		"a Framework that is Completed and goes on": {
			events: []event{status(frameworkv1.FrameworkCompleted, 0), status(running, 0)},
			want:   "attempt 0 of Framework fw went back from Completed",
		},
		"an end that changes": {
			events: []event{with(status(running, 0), ended(1)), with(status(running, 0), ended(2))},
			want:   "the end of attempt 0",
		},
		"a status that goes back in time": {
			events: []event{with(status(running, 0), at(20)), with(status(running, 0), at(10))},
			want:   "went back from",
		},
		"an attempt whose state goes back": {
			events: []event{status(frameworkv1.FrameworkAttemptDeleting, 0), status(running, 0)},
			want:   "attempt 0 of Framework fw went back from AttemptDeleting to AttemptRunning",
		},
		"a task whose state goes back": {
			events: []event{status(running, 0, task("t", frameworkv1.TaskAttemptDeleting, 0)), runs},
			want:   "attempt 0 of task fw-a-0 went back from AttemptDeleting to AttemptRunning",
		},
		"a task that starts again": {events: []event{runs, status(running, 0, task("t", frameworkv1.TaskAttemptPreparing, 0))}},
		"a task that goes back": {
			events: []event{status(running, 0, task("t", frameworkv1.TaskAttemptRunning, 1)), status(running, 0, task("t", frameworkv1.TaskAttemptRunning, 0))},
			want:   "task fw-a-0 went back",
		},
		"a task that is completed and goes on": {
			events: []event{status(running, 0, task("t", frameworkv1.TaskCompleted, 0)), runs},
			want:   "task fw-a-0 was Completed",
		},
		"a task that is not to be deleted any more": {
			events: []event{status(running, 0, marked), runs},
			want:   "was marked for deletion",
		},
		"a task that leaves the status while it runs": {
			events: []event{runs, status(running, 0)},
			want:   "left the status",
		},
		"a task that leaves the status of an attempt that has not begun": {events: []event{
			status(frameworkv1.FrameworkAttemptCreationPending, 0, task("t", frameworkv1.TaskAttemptCreationPending, 0)),
			status(frameworkv1.FrameworkAttemptCreationPending, 0),
		}},
		"a status that is lost": {
			events: []event{runs, {framework: &frameworkv1.Framework{ObjectMeta: runs.framework.ObjectMeta}}},
			want:   "has lost its status",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := brokenGuarantees(tc.events)
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("complaints about what is right: %q", got)
			case tc.want != "" && (len(got) != 1 || !strings.Contains(got[0], tc.want)):
				t.Errorf("the complaints are %q, want one with %q", got, tc.want)
			}
		})
	}
}
