// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// countTasks counts the tasks that a rescale does not delete. A task with a succeeded Pod counts as succeeded from
// then on; a failed task counts as pending until it is known whether it is retried.
func countTasks(roles []*frameworkv1.TaskRoleStatus) *frameworkv1.TaskCounts {
	counts := &frameworkv1.TaskCounts{}
	for _, role := range roles {
		for _, task := range role.TaskStatuses {
			if task.DeletionPending {
				continue
			}
			counts.Total++
			completion := task.AttemptStatus.CompletionStatus
			switch {
			case task.State == frameworkv1.TaskAttemptRunning:
				counts.Running++
			case completion != nil && succeeded(completion.CompletionStatus):
				counts.Succeeded++
			case task.State == frameworkv1.TaskCompleted:
				counts.Failed++
			default:
				counts.Pending++
			}
		}
	}
	return counts
}
