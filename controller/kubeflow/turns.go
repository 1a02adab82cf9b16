// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"time"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// countedStates are the conditions by which a job is counted. The first one that is True counts.
var countedStates = []kubeflowv1.JobConditionType{
	kubeflowv1.JobConditionSucceeded, kubeflowv1.JobConditionFailed, kubeflowv1.JobConditionSuspended,
	kubeflowv1.JobConditionRestarting, kubeflowv1.JobConditionRunning, kubeflowv1.JobConditionCreated,
}

// KnownState returns the state of a job as a label for metrics. status may be nil.
func KnownState(status *kubeflowv1.JobStatus) string {
	for _, state := range countedStates {
		if is(status, state) {
			return string(state)
		}
	}
	return "New"
}

// Turns returns what happened to a job between two successively written statuses. `before` may be nil.
func Turns(created time.Time, before, after *kubeflowv1.JobStatus) []plan.Turn {
	begins := func(state kubeflowv1.JobConditionType) bool { return is(after, state) && !is(before, state) }
	var turns []plan.Turn
	if begins(kubeflowv1.JobConditionRestarting) {
		turns = append(turns, plan.Turn{Kind: plan.Retried, Reason: "Restart"})
	}
	if begins(kubeflowv1.JobConditionRunning) && condition(before, kubeflowv1.JobConditionRunning) == nil &&
		condition(before, kubeflowv1.JobConditionRestarting) == nil {
		running := condition(after, kubeflowv1.JobConditionRunning)
		turns = append(turns, plan.Turn{Kind: plan.Ran, Took: max(0, running.LastTransitionTime.Sub(created))})
	}
	for _, end := range []kubeflowv1.JobConditionType{kubeflowv1.JobConditionSucceeded, kubeflowv1.JobConditionFailed} {
		if begins(end) {
			turns = append(turns, plan.Turn{Kind: plan.Completed, Type: string(end)})
		}
	}
	return turns
}
