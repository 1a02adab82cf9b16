// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscodec

import (
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Kept is what a CRD has kept of a status that has made stored of one. The CRD may be
// older than the fields that Lockstep has added to FrameworkController's: then the API
// server drops them. A field that stored lacks is left out of the status, which is not
// changed. Nothing is decided on any of them. Fields of tasks are never dropped: tasks have
// no schema.
func Kept(status, stored *frameworkv1.FrameworkStatus) *frameworkv1.FrameworkStatus {
	kept := *status
	if len(stored.History) == 0 {
		kept.History = nil
	}
	if len(stored.Waiting) == 0 {
		kept.Waiting = nil
	}
	attempt, storedAttempt := &kept.AttemptStatus, &stored.AttemptStatus
	if storedAttempt.TaskAttempts == (frameworkv1.TaskAttemptCounts{}) {
		attempt.TaskAttempts = frameworkv1.TaskAttemptCounts{}
	}
	end, storedEnd := attempt.CompletionStatus, storedAttempt.CompletionStatus
	if end != nil && end.Disruption != "" && (storedEnd == nil || storedEnd.Disruption == "") {
		undisrupted := *end
		undisrupted.Disruption = ""
		attempt.CompletionStatus = &undisrupted
	}
	return &kept
}
