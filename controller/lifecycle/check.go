// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// What this package decides on was checked by the API server's schema, or written
// by this package. Neither is certain: a Framework may be older than the schema,
// and whoever may write a status may write anything. What would make no sense to
// a decision is refused here, once and before it is looked at, so that decisions
// may rely on the shape of what they see.

// maxTaskNumber is the largest taskNumber that the schema allows.
const maxTaskNumber = 10000

// CheckSpec refuses a spec that can't be decided on. The error names the field
// and what is legal.
func CheckSpec(spec *frameworkv1.FrameworkSpec) error {
	first := make(map[string]int, len(spec.TaskRoles))
	for i, role := range spec.TaskRoles {
		if role.TaskNumber < 0 || role.TaskNumber > maxTaskNumber {
			return fmt.Errorf("spec.taskRoles[%d].taskNumber must be from 0 to %d, is %d", i, maxTaskNumber, role.TaskNumber)
		}
		if j, taken := first[role.Name]; taken {
			return fmt.Errorf("spec.taskRoles[%d].name %q must be unique, and is that of spec.taskRoles[%d] too", i, role.Name, j)
		}
		first[role.Name] = i
	}
	return nil
}

// checkStatus refuses a status that no controller has written.
func checkStatus(status *frameworkv1.FrameworkStatus) error {
	if err := checkAttempt(status); err != nil {
		return err
	}
	names := make(map[string]bool, len(status.AttemptStatus.TaskRoleStatuses))
	for i, role := range status.AttemptStatus.TaskRoleStatuses {
		if role == nil {
			return fmt.Errorf("status.attemptStatus.taskRoleStatuses[%d] is null", i)
		}
		if names[role.Name] {
			return fmt.Errorf("status.attemptStatus.taskRoleStatuses[%d] is the second of the name %q", i, role.Name)
		}
		names[role.Name] = true
		for j, task := range role.TaskStatuses {
			if task == nil {
				return fmt.Errorf("status of task %q[%d] is null", role.Name, j)
			}
			if int(task.Index) != j {
				return fmt.Errorf("status of task %q[%d] has the index %d", role.Name, j, task.Index)
			}
			if err := checkTask(task); err != nil {
				return fmt.Errorf("status of task %q[%d] is %w", role.Name, j, err)
			}
		}
	}
	return nil
}

// checkAttempt refuses a state without what has led to it.
func checkAttempt(status *frameworkv1.FrameworkStatus) error {
	attempt := &status.AttemptStatus
	begun, ended := true, true
	switch status.State {
	case frameworkv1.FrameworkAttemptCreationPending:
		begun, ended = false, false
	case frameworkv1.FrameworkAttemptCreationRequested,
		frameworkv1.FrameworkAttemptPreparing,
		frameworkv1.FrameworkAttemptRunning:
		ended = false
	case frameworkv1.FrameworkAttemptDeletionPending,
		frameworkv1.FrameworkAttemptDeletionRequested,
		frameworkv1.FrameworkAttemptDeleting:
	case frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted:
		begun = false // It may have ended before.
	default:
		return fmt.Errorf("status.state %q is unknown", status.State)
	}
	if begun && (attempt.ConfigMapUID == nil || attempt.InstanceUID == nil) {
		return fmt.Errorf("status.state is %s without a configMapUID and an instanceUID", status.State)
	}
	if ended && attempt.CompletionStatus == nil {
		return fmt.Errorf("status.state is %s without a completionStatus", status.State)
	}
	return nil
}

// checkTask refuses a state without what has led to it.
func checkTask(task *frameworkv1.TaskStatus) error {
	attempt := &task.AttemptStatus
	ended := true
	switch task.State {
	case frameworkv1.TaskAttemptCreationPending,
		frameworkv1.TaskAttemptCreationRequested,
		frameworkv1.TaskAttemptPreparing,
		frameworkv1.TaskAttemptRunning:
		ended = false
	case frameworkv1.TaskAttemptDeletionPending,
		frameworkv1.TaskAttemptDeletionRequested,
		frameworkv1.TaskAttemptDeleting,
		frameworkv1.TaskAttemptCompleted:
	case frameworkv1.TaskCompleted:
		if task.CompletionTime == nil {
			return fmt.Errorf("%s without a completionTime", task.State)
		}
	default:
		return fmt.Errorf("in the unknown state %q", task.State)
	}
	if associated(task.State) && attempt.PodUID == nil {
		return fmt.Errorf("%s without a podUID", task.State)
	}
	if ended && attempt.CompletionStatus == nil {
		return fmt.Errorf("%s without a completionStatus", task.State)
	}
	return nil
}
