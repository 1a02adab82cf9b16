// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"
	"time"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// KnownPhase returns the phase of a Job as a label for metrics. A phase that this controller does not know, because
// another program wrote it, gets a common word. status may be nil.
func KnownPhase(status *batchv1alpha1.JobStatus) string {
	switch {
	case status == nil || status.State.Phase == "":
		return "New"
	case isKnown(status.State.Phase):
		return string(status.State.Phase)
	default:
		return "Other"
	}
}

// Turns returns what happened to a Job between two successively written statuses. `before` may be nil.
func Turns(created time.Time, before, after *batchv1alpha1.JobStatus) []plan.Turn {
	if before == nil {
		before = &batchv1alpha1.JobStatus{}
	}
	var turns []plan.Turn
	for range min(max(0, after.RetryCount-before.RetryCount), 1) {
		turns = append(turns, plan.Turn{Kind: plan.Retried, Reason: "Restart"})
	}
	was, is := KnownPhase(before), KnownPhase(after)
	if was == is {
		return turns
	}
	ran := func(c batchv1alpha1.JobCondition) bool { return c.Status == batchv1alpha1.JobRunning }
	switch after.State.Phase {
	case batchv1alpha1.JobRunning:
		if !slices.ContainsFunc(before.Conditions, ran) {
			turns = append(turns, plan.Turn{Kind: plan.Ran, Took: max(0, after.State.LastTransitionTime.Sub(created))})
		}
	case batchv1alpha1.JobCompleted:
		turns = append(turns, plan.Turn{Kind: plan.Completed, Type: "Succeeded"})
	case batchv1alpha1.JobFailed, batchv1alpha1.JobAborted, batchv1alpha1.JobTerminated:
		turns = append(turns, plan.Turn{Kind: plan.Completed, Type: is})
	}
	return turns
}
