// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"fmt"
	"slices"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// applyCompletionPolicy completes the attempt if the states of the tasks decide that. These states are written
// together with the verdict, so a restarted controller comes to the same verdict.
func (d *decision) applyCompletionPolicy() (goOn bool) {
	if d.completing() {
		return true
	}
	if completion := evaluateCompletion(d.Framework.Spec.TaskRoles, d.next.AttemptStatus.TaskRoleStatuses); completion != nil {
		d.attemptBecomesDeletionPending(completion)
	}
	return true
}

// evaluateCompletion returns how the attempt ends by the completion policy; nil while the attempt goes on. If
// minFailedTaskCount of a role is n, the n-th task of the role that failed may end the attempt; minSucceededTaskCount
// counts tasks that succeeded in the same way. Of all such tasks, the task that completed first ends the attempt. If
// several completed at the same time, the first in the order of the spec does. If there is no such task, the attempt
// succeeds once all tasks have completed, whatever their results. Tasks that a rescale deletes don't count.
func evaluateCompletion(specs []frameworkv1.TaskRoleSpec, statuses []*frameworkv1.TaskRoleStatus) *frameworkv1.FrameworkAttemptCompletionStatus {
	roles := rolesByName(statuses)
	var winner, last *trigger
	var completed, total int
	for _, spec := range specs {
		total += int(spec.TaskNumber)
		failedTasks, succeededTasks := completedTasks(roles[spec.Name])
		completed += len(failedTasks) + len(succeededTasks)

		policy := spec.FrameworkAttemptCompletionPolicy
		winner = earlier(winner, reached(spec.Name, "Failed", failedTasks, policy.FailedThreshold()))
		winner = earlier(winner, reached(spec.Name, "Succeeded", succeededTasks, policy.SucceededThreshold()))
		last = later(last, latest(spec.Name, failedTasks))
		last = later(last, latest(spec.Name, succeededTasks))
	}
	if winner != nil {
		return winner.inherit()
	}
	if total < 1 || completed < total {
		return nil
	}
	last.message = fmt.Sprintf("CompletedTaskCount %d reached TotalTaskCount %d", completed, total)
	completion := attemptCompletion(frameworkv1.CodeSucceeded, last.message)
	completion.Trigger = last.status()
	return completion
}

// trigger is a task with an end that may complete the attempt.
type trigger struct {
	role    string
	task    *frameworkv1.TaskStatus
	message string
}

// reached returns the task that reached a threshold, nil without one.
func reached(role, result string, tasks []*frameworkv1.TaskStatus, threshold int32) *trigger {
	if threshold < 1 || len(tasks) < int(threshold) {
		return nil
	}
	return &trigger{
		role: role,
		task: byCompletion(tasks)[threshold-1],
		message: fmt.Sprintf("%sTaskCount %d reached Min%sTaskCount %d in the TaskRole",
			result, len(tasks), result, threshold),
	}
}

// earlier returns the trigger that came first, and a if both came together.
func earlier(a, b *trigger) *trigger {
	switch {
	case a == nil:
		return b
	case b == nil || !b.task.CompletionTime.Before(a.task.CompletionTime):
		return a
	default:
		return b
	}
}

// latest returns the task that completed last; if several did at the same time, the one with the lowest index.
func latest(role string, tasks []*frameworkv1.TaskStatus) *trigger {
	var last *trigger
	for _, task := range tasks {
		last = later(last, &trigger{role: role, task: task})
	}
	return last
}

// later returns the later of two triggers. If both are of the same time, the result is a, unless b is of the same role
// and has the lower index.
func later(a, b *trigger) *trigger {
	switch {
	case a == nil:
		return b
	case b == nil || b.task.CompletionTime.Before(a.task.CompletionTime):
		return a
	case a.task.CompletionTime.Before(b.task.CompletionTime),
		a.role == b.role && b.task.Index < a.task.Index:
		return b
	default:
		return a
	}
}

// inherit gives the attempt the end of the task.
func (t *trigger) inherit() *frameworkv1.FrameworkAttemptCompletionStatus {
	return &frameworkv1.FrameworkAttemptCompletionStatus{
		CompletionStatus: t.task.AttemptStatus.CompletionStatus.CompletionStatus,
		Trigger:          t.status(),
	}
}

func (t *trigger) status() *frameworkv1.CompletionPolicyTriggerStatus {
	return &frameworkv1.CompletionPolicyTriggerStatus{Message: t.message, TaskRoleName: t.role, TaskIndex: t.task.Index}
}

// completedTasks returns the completed tasks of a role, by result, in the order of the index.
func completedTasks(role *frameworkv1.TaskRoleStatus) (failedTasks, succeededTasks []*frameworkv1.TaskStatus) {
	if role == nil {
		return nil, nil
	}
	for _, task := range role.TaskStatuses {
		switch {
		case task.DeletionPending || task.State != frameworkv1.TaskCompleted:
		case succeeded(task.AttemptStatus.CompletionStatus.CompletionStatus):
			succeededTasks = append(succeededTasks, task)
		default:
			failedTasks = append(failedTasks, task)
		}
	}
	return failedTasks, succeededTasks
}

// byCompletion orders tasks by the time of completion, then by index.
func byCompletion(tasks []*frameworkv1.TaskStatus) []*frameworkv1.TaskStatus {
	return slices.SortedFunc(slices.Values(tasks), func(a, b *frameworkv1.TaskStatus) int {
		return cmp.Or(a.CompletionTime.Compare(b.CompletionTime.Time), cmp.Compare(a.Index, b.Index))
	})
}
