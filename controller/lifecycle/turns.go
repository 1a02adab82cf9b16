// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// other is the label value, in metrics, of each reason and type that is not in the fixed list. Another client may write
// any text into the status, and must not create metrics by it.
const other = "Other"

// maxCountedCode is the highest exit code that has a label value of its own in metrics. Exit codes of Linux end at 255.
const maxCountedCode = 999

// Turns returns what happened to a Framework between two successively written statuses. `before` may be nil. Every end
// of an attempt is counted, because each is written before the next attempt begins.
func Turns(created time.Time, before, after *frameworkv1.FrameworkStatus, now time.Time) []plan.Turn {
	if before == nil {
		before = &frameworkv1.FrameworkStatus{AttemptStatus: frameworkv1.FrameworkAttemptStatus{ID: after.AttemptStatus.ID}}
	}
	var turns []plan.Turn
	was, is := &before.AttemptStatus, &after.AttemptStatus
	same := was.ID == is.ID
	if !same {
		turns = append(turns, plan.Turn{Kind: plan.Retried, Reason: retryReason(completionOf(was.CompletionStatus))})
	}
	if is.ConfigMapUID != nil && (!same || was.ConfigMapUID == nil) {
		turns = append(turns, plan.Turn{Kind: plan.AttemptStarted})
	}
	if before.RunTime == nil && after.RunTime != nil {
		turns = append(turns, plan.Turn{Kind: plan.Ran, Took: max(0, after.RunTime.Sub(created))})
	}
	turns = append(turns, waits(before.Conditions, after.Conditions, now)...)
	if is.CompletionStatus != nil && (!same || was.CompletionStatus == nil) {
		turns = append(turns, completed(is.CompletionStatus.CompletionStatus))
	}
	if same {
		turns = append(turns, taskTurns(was, is)...)
	}
	if after.State == frameworkv1.FrameworkCompleted && before.State != after.State && is.CompletionStatus != nil {
		turns = append(turns, plan.Turn{Kind: plan.Completed, Type: typeOf(is.CompletionStatus.CompletionStatus)})
	}
	return turns
}

func completionOf(status *frameworkv1.FrameworkAttemptCompletionStatus) *frameworkv1.CompletionStatus {
	if status == nil {
		return nil
	}
	return &status.CompletionStatus
}

// taskTurns are those of the tasks of one attempt.
func taskTurns(was, is *frameworkv1.FrameworkAttemptStatus) []plan.Turn {
	roles := rolesByName(was.TaskRoleStatuses)
	var turns []plan.Turn
	for _, role := range is.TaskRoleStatuses {
		old := roles[role.Name]
		for i, task := range role.TaskStatuses {
			var before frameworkv1.TaskAttemptStatus
			if old != nil && i < len(old.TaskStatuses) && old.TaskStatuses[i].InstanceUID == task.InstanceUID {
				if old.TaskStatuses[i] == task {
					continue
				}
				before = old.TaskStatuses[i].AttemptStatus
			}
			after := &task.AttemptStatus
			if before.ID < after.ID && before.CompletionStatus != nil {
				turns = append(turns, plan.Turn{Kind: plan.Retried, Task: true, Reason: retryReason(&before.CompletionStatus.CompletionStatus)})
			}
			if after.PodUID != nil && (before.ID != after.ID || before.PodUID == nil) {
				turns = append(turns, plan.Turn{Kind: plan.AttemptStarted, Task: true})
			}
			if after.CompletionStatus != nil && (before.ID != after.ID || before.CompletionStatus == nil) {
				turn := completed(after.CompletionStatus.CompletionStatus)
				turn.Task = true
				turns = append(turns, turn)
			}
		}
	}
	return turns
}

func completed(completion frameworkv1.CompletionStatus) plan.Turn {
	code := other
	if completion.Code >= frameworkv1.ReservedCodeMin && completion.Code <= maxCountedCode {
		code = strconv.Itoa(int(completion.Code))
	}
	return plan.Turn{Kind: plan.AttemptCompleted, Code: code, Type: typeOf(completion)}
}

// typeOf returns how an attempt ended, as the value of a label: Succeeded; else the first of Conflict, Transient and
// Permanent among its attributes; else Failed.
func typeOf(completion frameworkv1.CompletionStatus) string {
	if succeeded(completion) {
		return string(frameworkv1.CompletionTypeSucceeded)
	}
	for _, attribute := range []frameworkv1.CompletionTypeAttribute{
		frameworkv1.AttributeConflict, frameworkv1.AttributeTransient, frameworkv1.AttributePermanent,
	} {
		if slices.Contains(completion.Type.Attributes, attribute) {
			return string(attribute)
		}
	}
	return string(frameworkv1.CompletionTypeFailed)
}

// retryReason returns what the attempt before a retry ended with.
func retryReason(completion *frameworkv1.CompletionStatus) string {
	switch {
	case completion == nil:
		return other
	case completion.Code == frameworkv1.CodeAdmissionWithdrawn:
		return "AdmissionWithdrawn"
	default:
		return typeOf(*completion)
	}
}

// waits returns the waits that have ended: for nodes, for admission to a queue, and for the creation of Pods.
func waits(before, after []metav1.Condition, now time.Time) []plan.Turn {
	var turns []plan.Turn
	for _, wait := range []struct {
		condition string
		status    metav1.ConditionStatus
	}{
		{frameworkv1.ConditionGangScheduled, metav1.ConditionFalse},
		{frameworkv1.ConditionAdmitted, metav1.ConditionFalse},
		{frameworkv1.ConditionTasksBlocked, metav1.ConditionTrue},
	} {
		was, is := meta.FindStatusCondition(before, wait.condition), meta.FindStatusCondition(after, wait.condition)
		if was == nil || was.Status != wait.status || is != nil && is.Status == wait.status {
			continue
		}
		turns = append(turns, plan.Turn{Kind: plan.Waited, Reason: waitReason(was.Reason), Took: max(0, now.Sub(was.LastTransitionTime.Time))})
	}
	return turns
}

// waitReason returns the reason of a condition as a label: the reason itself if the controller or the scheduler gives
// it, else Other.
func waitReason(reason string) string {
	switch reason {
	case reasonNoPodGroup, reasonNotYetScheduled, reasonInQueue,
		schedulingv1alpha1.ReasonNotEnoughTasks, schedulingv1alpha1.ReasonNotEnoughResources, schedulingv1alpha1.ReasonBindingFailed, schedulingv1alpha1.ReasonBinding,
		frameworkv1.ReasonNameTaken, frameworkv1.ReasonQuotaExceeded, frameworkv1.ReasonPriorityClassNotFound, frameworkv1.ReasonCreationRefused:
		return reason
	default:
		return other
	}
}

// KnownState returns a state of a Framework as a word to count by.
func KnownState(state frameworkv1.FrameworkState) string {
	if state == frameworkv1.FrameworkCompleted || frameworkExits(state) != nil {
		return string(state)
	}
	return other
}
