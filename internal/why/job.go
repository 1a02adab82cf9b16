// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

// ReasonSuspended: the job of an integration is suspended.
const ReasonSuspended answers.Reason = "Suspended"

// maxWarnings is how many warnings about a job are evidence.
const maxWarnings = 3

// statesOfJobs are the states in which a Volcano Job or a training job does not wait for its gang, with what the user
// can do.
var statesOfJobs = map[string]struct {
	reason answers.Reason
	says   string
	next   string
}{
	"Succeeded":   {view.StateSucceeded, "it has ended", ""},
	"Completed":   {view.StateSucceeded, "it has ended", ""},
	"Failed":      {view.StateFailed, "it has failed", "look at its events, and create it again"},
	"Terminated":  {view.StateStopped, "it was terminated", "create it again"},
	"Aborted":     {view.StateStopped, "it was aborted", "a Command with the action ResumeJob resumes it"},
	"Suspended":   {ReasonSuspended, "it is suspended", "set spec.runPolicy.suspend to false"},
	"Aborting":    {ReasonEnding, "it is being aborted, and its Pods are being deleted", "wait until its Pods have ended"},
	"Completing":  {ReasonEnding, "it is being completed, and its Pods are being deleted", "wait until its Pods have ended"},
	"Terminating": {ReasonEnding, "it is being terminated, and its Pods are being deleted", "wait until its Pods have ended"},
}

// OfJob returns why a Volcano Job or a training job does not run, if the job's own status shows that; false if only the
// gang can show it.
func OfJob(job *view.Row, events []corev1.Event) (answers.Why, bool) {
	answer := answers.Why{Namespace: job.Namespace, Name: job.Name, Evidence: warnings(events)}
	state, known := statesOfJobs[job.State]
	if !known {
		return answer, false
	}
	answer.Reason, answer.Next, answer.Message = state.reason, state.next, told(state.says, job)
	return answer, true
}

// OfJobWithoutGang explains the state of a Volcano Job or training job that has no gang and has not ended: why the job
// does not run, or that it runs.
func OfJobWithoutGang(job *view.Row, events []corev1.Event) answers.Why {
	answer := answers.Why{Namespace: job.Namespace, Name: job.Name, Evidence: warnings(events)}
	switch {
	case job.Running > 0:
		answer.Reason, answer.Message = ReasonRunning, fmt.Sprintf("it runs: %d of %s", job.Running, text.Counted(int(job.Total), "task"))
	case !job.Seen:
		answer.Reason, answer.Message = ReasonUnseen, "no controller has seen it"
		answer.Next = "is lockstep-controller running, and are jobs of the kind " + job.Kind + " turned on?"
	default:
		answer.Reason, answer.Message = ReasonCreating, told("its Pods are not created yet", job)
		answer.Next = "look at the evidence, and at the events of its Pods"
	}
	return answer
}

// told adds what the job's status says.
func told(says string, job *view.Row) string {
	if said := cmp.Or(job.Message, job.Waiting); said != "" {
		return says + ": " + said
	}
	return says
}

// warnings returns the last ones among events, the newest first, each once.
func warnings(events []corev1.Event) []string {
	var lines []string
	for _, event := range slices.Backward(view.LastEvents(events)) {
		line := event.Reason + ": " + event.Message
		if event.Warning && len(lines) < maxWarnings && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}
