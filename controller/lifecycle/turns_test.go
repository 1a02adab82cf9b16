// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

func TestWhatIsCountedOfAFramework(t *testing.T) {
	created := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	at := func(after time.Duration) *metav1.Time { at := metav1.NewTime(created.Add(after)); return &at }
	uid := types.UID("a")
	type status = frameworkv1.FrameworkStatus
	attempt := func(id int32, completion *frameworkv1.FrameworkAttemptCompletionStatus, tasks ...*frameworkv1.TaskStatus) frameworkv1.FrameworkAttemptStatus {
		return frameworkv1.FrameworkAttemptStatus{
			ID: id, ConfigMapUID: &uid, CompletionStatus: completion,
			TaskRoleStatuses: []*frameworkv1.TaskRoleStatus{{Name: "worker", TaskStatuses: tasks}},
		}
	}
	task := func(id int32, completion *frameworkv1.TaskAttemptCompletionStatus) *frameworkv1.TaskStatus {
		return &frameworkv1.TaskStatus{InstanceUID: "t", AttemptStatus: frameworkv1.TaskAttemptStatus{ID: id, PodUID: &uid, CompletionStatus: completion}}
	}
	waiting := func(status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: frameworkv1.ConditionGangScheduled, Status: status, Reason: reason, LastTransitionTime: *at(0)}}
	}
	oom := attemptCompletion(137, "")
	for name, tc := range map[string]struct {
		before, after *status
		want          []plan.Turn
	}{
		"its first status": {
			after: &status{State: frameworkv1.FrameworkAttemptCreationPending},
		},
		"the same again": {
			before: &status{RunTime: at(0), AttemptStatus: attempt(1, oom, task(1, nil)), Conditions: waiting(metav1.ConditionFalse, "NotYetScheduled")},
			after:  &status{RunTime: at(0), AttemptStatus: attempt(1, oom, task(1, nil)), Conditions: waiting(metav1.ConditionFalse, "NotEnoughResources")},
		},
		"its attempt begins, and runs": {
			before: &status{},
			after:  &status{RunTime: at(time.Minute), AttemptStatus: attempt(0, nil, task(0, nil))},
			want: []plan.Turn{
				{Kind: plan.AttemptStarted}, {Kind: plan.Ran, Took: time.Minute}, {Kind: plan.AttemptStarted, Task: true},
			},
		},
		"a clock of the API server that is ahead": {
			before: &status{AttemptStatus: attempt(0, nil)},
			after:  &status{RunTime: at(-time.Hour), AttemptStatus: attempt(0, nil)},
			want:   []plan.Turn{{Kind: plan.Ran}},
		},
		"its gang is placed": {
			before: &status{AttemptStatus: attempt(0, nil), Conditions: waiting(metav1.ConditionFalse, schedulingv1alpha1.ReasonNotEnoughResources)},
			after:  &status{AttemptStatus: attempt(0, nil), Conditions: waiting(metav1.ConditionTrue, "Scheduled")},
			want:   []plan.Turn{{Kind: plan.Waited, Reason: "NotEnoughResources", Took: time.Hour}},
		},
		"its gang waited for what somebody has written": {
			before: &status{AttemptStatus: attempt(0, nil), Conditions: waiting(metav1.ConditionFalse, "x-123456789")},
			after:  &status{AttemptStatus: attempt(0, nil)},
			want:   []plan.Turn{{Kind: plan.Waited, Reason: "Other", Took: time.Hour}},
		},
		"a task fails": {
			before: &status{AttemptStatus: attempt(0, nil, task(0, nil))},
			after:  &status{AttemptStatus: attempt(0, nil, task(0, taskCompletion(frameworkv1.CodePodExternalDeleted, "")))},
			want:   []plan.Turn{{Kind: plan.AttemptCompleted, Task: true, Code: "-101", Type: "Transient"}},
		},
		"a task is retried": {
			before: &status{AttemptStatus: attempt(0, nil, task(0, taskCompletion(frameworkv1.CodePodExternalDeleted, "")))},
			after:  &status{AttemptStatus: attempt(0, nil, task(1, nil))},
			want:   []plan.Turn{{Kind: plan.Retried, Task: true, Reason: "Transient"}, {Kind: plan.AttemptStarted, Task: true}},
		},
		"an attempt fails": {
			before: &status{AttemptStatus: attempt(0, nil)},
			after:  &status{AttemptStatus: attempt(0, oom)},
			want:   []plan.Turn{{Kind: plan.AttemptCompleted, Code: "137", Type: "Failed"}},
		},
		"an attempt ends with a code that no set has": {
			before: &status{AttemptStatus: attempt(0, nil)},
			after:  &status{AttemptStatus: attempt(0, attemptCompletion(123456789, ""))},
			want:   []plan.Turn{{Kind: plan.AttemptCompleted, Code: "Other", Type: "Failed"}},
		},
		"an attempt is retried": {
			before: &status{AttemptStatus: attempt(0, attemptCompletion(frameworkv1.CodePodGroupScheduleTimeout, ""))},
			after:  &status{AttemptStatus: frameworkv1.FrameworkAttemptStatus{ID: 1}},
			want:   []plan.Turn{{Kind: plan.Retried, Reason: "Conflict"}},
		},
		"it completes": {
			before: &status{State: frameworkv1.FrameworkAttemptCompleted, AttemptStatus: attempt(0, attemptCompletion(0, ""))},
			after:  &status{State: frameworkv1.FrameworkCompleted, AttemptStatus: attempt(0, attemptCompletion(0, ""))},
			want:   []plan.Turn{{Kind: plan.Completed, Type: "Succeeded"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Turns(created, tc.before, tc.after, created.Add(time.Hour))); diff != "" {
				t.Errorf("what is counted differs (-want,+got):\n%s", diff)
			}
		})
	}
}
