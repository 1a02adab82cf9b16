// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// States of Frameworks and tasks, for users. Several states of the API map to one of these.
const (
	// StateNotStarted: executionType is Create.
	StateNotStarted = "NotStarted"
	// StateCreating: the attempt, or the Pod, is yet to be seen.
	StateCreating = "Creating"
	// StatePreparing: the attempt exists, and nothing has run yet.
	StatePreparing = "Preparing"
	// StateRunning: a task has run in this attempt; for a task, the Pod runs.
	StateRunning = "Running"
	// StateEnding: the end is decided, and Pods are being deleted.
	StateEnding = "Ending"
	// StateRetrying: the attempt has ended, and the retry is not decided yet, or not due yet.
	StateRetrying = "Retrying"
	// StateSucceeded, StateFailed and StateStopped are ends.
	StateSucceeded = "Succeeded"
	StateFailed    = "Failed"
	StateStopped   = "Stopped"
)

// States returns all states of Frameworks, from the first to the last.
func States() []string {
	return []string{StateNotStarted, StateCreating, StatePreparing, StateRunning, StateEnding, StateRetrying, StateSucceeded, StateFailed, StateStopped}
}

// Final reports whether a Framework stays in the state.
func Final(state string) bool {
	return state == StateSucceeded || state == StateFailed || state == StateStopped
}

// Tone is what a state means to a reader. The terminal and the web page show each Tone in one colour.
type Tone string

// Tones of states.
const (
	// ToneRuns: the job works.
	ToneRuns Tone = "runs"
	// ToneWaits: the job does not work, and is to.
	ToneWaits Tone = "waits"
	// ToneGood and ToneBad are ends.
	ToneGood Tone = "good"
	ToneBad  Tone = "bad"
	// ToneQuiet: a user asked the job to do nothing.
	ToneQuiet Tone = "quiet"
)

// ToneOf returns the tone of a state of a job of whatever kind.
func ToneOf(state string) Tone {
	switch state {
	case StateRunning, "Completing":
		return ToneRuns
	case StateSucceeded, "Completed":
		return ToneGood
	case StateFailed, "Aborted", "Terminated":
		return ToneBad
	case StateStopped, StateNotStarted, "Suspended":
		return ToneQuiet
	default:
		return ToneWaits
	}
}

// FrameworkState returns the state of a Framework, for people.
func FrameworkState(fw *frameworkv1.Framework) string {
	if fw.Status == nil {
		return notYet(fw)
	}
	switch fw.Status.State {
	case frameworkv1.FrameworkCompleted:
		return ended(completion(fw.Status.AttemptStatus.CompletionStatus))
	case frameworkv1.FrameworkAttemptCreationPending:
		return notYet(fw)
	case frameworkv1.FrameworkAttemptCompleted:
		if end := fw.Status.AttemptStatus.CompletionStatus; end != nil && fw.Status.RetryPolicyStatus.RetryDelaySec == nil && end.Type.Name == frameworkv1.CompletionTypeSucceeded {
			return StateEnding // what follows is yet to be decided, and mostly nothing does
		}
	}
	return during(string(fw.Status.State))
}

func completion(end *frameworkv1.FrameworkAttemptCompletionStatus) *frameworkv1.CompletionStatus {
	if end == nil {
		return nil
	}
	return &end.CompletionStatus
}

func notYet(fw *frameworkv1.Framework) string {
	if fw.Spec.ExecutionType == frameworkv1.ExecutionCreate {
		return StateNotStarted
	}
	return StateCreating
}

// TaskState returns the state of a task, for people.
func TaskState(s *frameworkv1.TaskStatus) string {
	end := s.AttemptStatus.CompletionStatus
	if s.State == frameworkv1.TaskAttemptCompleted && s.RetryPolicyStatus.RetryDelaySec == nil && end != nil && end.Type.Name == frameworkv1.CompletionTypeSucceeded {
		return StateSucceeded // nothing says that it is run again
	}
	if s.State != frameworkv1.TaskCompleted {
		return during(string(s.State))
	}
	if s.AttemptStatus.CompletionStatus == nil {
		return ended(nil)
	}
	return ended(&s.AttemptStatus.CompletionStatus.CompletionStatus)
}

// during returns the word for a state of a Framework or a task that has not ended. An unknown state, of a newer
// version, stays as it is.
func during(state string) string {
	switch frameworkv1.TaskState(state) {
	case frameworkv1.TaskAttemptCreationPending, frameworkv1.TaskAttemptCreationRequested:
		return StateCreating
	case frameworkv1.TaskAttemptPreparing:
		return StatePreparing
	case frameworkv1.TaskAttemptRunning:
		return StateRunning
	case frameworkv1.TaskAttemptDeletionPending, frameworkv1.TaskAttemptDeletionRequested, frameworkv1.TaskAttemptDeleting:
		return StateEnding
	case frameworkv1.TaskAttemptCompleted:
		return StateRetrying
	default:
		return state
	}
}

// ended returns the word for how a task or a Framework ended. If the Framework or the user ended a task, the word does
// not say that it failed.
func ended(end *frameworkv1.CompletionStatus) string {
	switch {
	case end == nil:
		return StateFailed
	case end.Type.Name == frameworkv1.CompletionTypeSucceeded:
		return StateSucceeded
	case end.Code == frameworkv1.CodeStopFrameworkRequested, end.Code == frameworkv1.CodeFrameworkAttemptCompletion, end.Code == frameworkv1.CodeDeleteTaskRequested:
		return StateStopped
	default:
		return StateFailed
	}
}
