// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// status.history has one record of each attempt that is over, as many as the options
// say, the oldest first. A record is made together with the state AttemptCompleted, and
// the retry is added together with the next attempt, so that no crash comes between:
// what is decided anew after a crash makes the same record, and none twice.
//
// Nothing is decided on the history. Where the field is missing, because an older version wrote the status or an
// older CRD has dropped the field, it begins with the next attempt that is over.

// Bounds of a record's texts, in bytes of JSON.
const (
	recordedDiagnostics = 256
	recordedName        = 64
	recordedMessage     = 192
)

// recordAttempt adds the attempt that is over to the history.
func (d *decision) recordAttempt() {
	attempt := &d.next.AttemptStatus
	record := frameworkv1.AttemptRecord{
		ID:               attempt.ID,
		StartTime:        attempt.StartTime,
		RunTime:          attempt.RunTime,
		CompletionTime:   attempt.CompletionTime,
		CompletionStatus: recordedCompletion(*attempt.CompletionStatus),
		Tasks:            *countTasks(attempt.TaskRoleStatuses),
		TaskAttempts:     attempt.TaskAttempts,
	}
	history := append(slices.Clip(d.next.History), record)
	d.next.History = slices.Clone(history[max(0, len(history)-d.Options.HistoryLimit):])
}

// recordRetry adds the following attempt to the record of an attempt.
func (d *decision) recordRetry(accountable bool, delaySec int64) {
	last := len(d.next.History) - 1
	if last < 0 || d.next.History[last].ID != d.next.AttemptStatus.ID {
		return
	}
	d.next.History = slices.Clone(d.next.History)
	d.next.History[last].Retry = &frameworkv1.AttemptRetry{Accountable: accountable, DelaySec: delaySec}
}

// recordedCompletion returns the end of an attempt in few bytes.
func recordedCompletion(end frameworkv1.FrameworkAttemptCompletionStatus) frameworkv1.FrameworkAttemptCompletionStatus {
	end.Diagnostics = text.ShortenJSON(end.Diagnostics, recordedDiagnostics)
	end.Phrase = text.ShortenJSON(end.Phrase, recordedName)
	end.Type.Attributes = end.Type.Attributes[:min(len(end.Type.Attributes), 3)] // There are three.
	if end.Trigger != nil {
		end.Trigger = &frameworkv1.CompletionPolicyTriggerStatus{
			Message:      text.ShortenJSON(end.Trigger.Message, recordedMessage),
			TaskRoleName: text.ShortenJSON(end.Trigger.TaskRoleName, recordedName),
			TaskIndex:    end.Trigger.TaskIndex,
		}
	}
	return end
}

// countEnd counts the end of a task's attempt by cause. countEnd does not count a success, an end because the
// Framework's attempt has ended, or an end because the user scaled the task down.
func countEnd(counts *frameworkv1.TaskAttemptCounts, end frameworkv1.CompletionStatus) {
	switch {
	case succeeded(end),
		end.Code == frameworkv1.CodeFrameworkAttemptCompletion,
		end.Code == frameworkv1.CodeDeleteTaskRequested:
	case end.Disruption == frameworkv1.DisruptionPreempted:
		counts.Preemptions++
	case end.Disruption == frameworkv1.DisruptionNodeLost:
		counts.NodeLosses++
	case end.Disruption == frameworkv1.DisruptionEvicted:
		counts.Evictions++
	case end.Code == frameworkv1.CodePodExternalDeleted && end.Disruption == "":
		counts.Deletions++
	default:
		counts.Failures++
	}
}
