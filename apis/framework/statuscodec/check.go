// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	"fmt"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// check refuses a status that no controller has written.
func check(status *frameworkv1.FrameworkStatus) error {
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
	if task.State.Associated() && attempt.PodUID == nil {
		return fmt.Errorf("%s without a podUID", task.State)
	}
	if ended && attempt.CompletionStatus == nil {
		return fmt.Errorf("%s without a completionStatus", task.State)
	}
	return nil
}
