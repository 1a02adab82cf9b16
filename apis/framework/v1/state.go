// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// FrameworkState is the state of a Framework's life. The truth behind the state is the attempt's ConfigMap:
// associated states have one.
//
// +enum
// +kubebuilder:validation:Enum=AttemptCreationPending;AttemptCreationRequested;AttemptPreparing;AttemptRunning;AttemptDeletionPending;AttemptDeletionRequested;AttemptDeleting;AttemptCompleted;Completed
type FrameworkState string

// TaskState is the state of a Task's life. The truth behind the state is the attempt's Pod: associated states have
// one.
type TaskState string

// States of a Framework, in the order of an attempt. An attempt skips states if the ConfigMap is gone before the
// controller has seen that: it is AttemptCompleted at once, or Deleting as long as a Pod is left.
const (
	// FrameworkAttemptCreationPending: the ConfigMap is to be created. The
	// start of every attempt. Exits: CreationRequested; AttemptCompleted when
	// stopped.
	FrameworkAttemptCreationPending FrameworkState = "AttemptCreationPending"
	// FrameworkAttemptCreationRequested: the ConfigMap was created and is not
	// yet seen. Exits: Preparing; Deleting; AttemptCompleted when stopped, gone,
	// or not seen in time.
	FrameworkAttemptCreationRequested FrameworkState = "AttemptCreationRequested"
	// FrameworkAttemptPreparing: the ConfigMap is there, no task has run yet in
	// this attempt. Exits: Running; DeletionPending; Deleting; AttemptCompleted.
	FrameworkAttemptPreparing FrameworkState = "AttemptPreparing"
	// FrameworkAttemptRunning: some task has run in this attempt. Exits:
	// DeletionPending; Deleting; AttemptCompleted.
	FrameworkAttemptRunning FrameworkState = "AttemptRunning"
	// FrameworkAttemptDeletionPending: the attempt's end is decided; once that is persisted, the ConfigMap is deleted.
	// Exits: DeletionRequested; Deleting; AttemptCompleted.
	FrameworkAttemptDeletionPending FrameworkState = "AttemptDeletionPending"
	// FrameworkAttemptDeletionRequested: the ConfigMap's deletion was requested
	// and is not yet seen. Exits: Deleting; AttemptCompleted.
	FrameworkAttemptDeletionRequested FrameworkState = "AttemptDeletionRequested"
	// FrameworkAttemptDeleting: the ConfigMap waits until the Pods are gone. Exit: AttemptCompleted.
	FrameworkAttemptDeleting FrameworkState = "AttemptDeleting"
	// FrameworkAttemptCompleted: the ConfigMap is gone for good; a retry is to
	// be decided or waited for. Exits: CreationPending; Completed.
	FrameworkAttemptCompleted FrameworkState = "AttemptCompleted"
	// FrameworkCompleted: there is no further attempt. Final.
	FrameworkCompleted FrameworkState = "Completed"
)

// States of a Task, in the order of an attempt. When the attempt of the Framework completes, a task in any state is
// Completed.
const (
	// TaskAttemptCreationPending: the Pod is to be created. Exits:
	// CreationRequested; AttemptCompleted when scaled down or refused.
	TaskAttemptCreationPending TaskState = "AttemptCreationPending"
	// TaskAttemptCreationRequested: the Pod was created and is not yet seen.
	// Exits: Preparing; Deleting; AttemptCompleted when gone, scaled down, or not
	// seen in time.
	TaskAttemptCreationRequested TaskState = "AttemptCreationRequested"
	// TaskAttemptPreparing: the Pod is there and waits to run. Exits: Running;
	// DeletionPending; Deleting; AttemptCompleted.
	TaskAttemptPreparing TaskState = "AttemptPreparing"
	// TaskAttemptRunning: the Pod runs. Exits: Preparing when the Pod starts again; DeletionPending; Deleting;
	// AttemptCompleted.
	TaskAttemptRunning TaskState = "AttemptRunning"
	// TaskAttemptDeletionPending: the end is decided; once that is persisted, the
	// Pod is deleted. Exits: DeletionRequested; Deleting; AttemptCompleted.
	TaskAttemptDeletionPending TaskState = "AttemptDeletionPending"
	// TaskAttemptDeletionRequested: the Pod's deletion was requested and is not
	// yet seen. Exits: Deleting; AttemptCompleted.
	TaskAttemptDeletionRequested TaskState = "AttemptDeletionRequested"
	// TaskAttemptDeleting: the Pod is ending. Exit: AttemptCompleted.
	TaskAttemptDeleting TaskState = "AttemptDeleting"
	// TaskAttemptCompleted: the Pod is gone for good; a retry is to be decided
	// or waited for. Exits: CreationPending; Completed.
	TaskAttemptCompleted TaskState = "AttemptCompleted"
	// TaskCompleted: there is no further attempt. Final.
	TaskCompleted TaskState = "Completed"
)

// Associated says whether a task in this state has a Pod.
func (s TaskState) Associated() bool {
	switch s {
	case TaskAttemptCreationPending, TaskAttemptCompleted, TaskCompleted:
		return false
	default:
		return true
	}
}
