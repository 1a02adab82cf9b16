// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import "slices"

// ShareTasks copies a status but for its tasks, which both then share: a task is
// never changed once it is part of a status, but replaced.
func ShareTasks(status *FrameworkStatus) *FrameworkStatus {
	copied := *status
	roles := make([]*TaskRoleStatus, len(status.AttemptStatus.TaskRoleStatuses))
	for i, role := range status.AttemptStatus.TaskRoleStatuses {
		shared := *role
		shared.TaskStatuses = slices.Clone(role.TaskStatuses)
		roles[i] = &shared
	}
	copied.AttemptStatus.TaskRoleStatuses = roles
	copied.Conditions = slices.Clone(status.Conditions)
	return &copied
}
