// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// condition returns the job's condition of a type. Nil if there is none.
func condition(status *kubeflowv1.JobStatus, t kubeflowv1.JobConditionType) *kubeflowv1.JobCondition {
	if status == nil {
		return nil
	}
	i := slices.IndexFunc(status.Conditions, func(c kubeflowv1.JobCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &status.Conditions[i]
}

// is reports whether a condition is True.
func is(status *kubeflowv1.JobStatus, t kubeflowv1.JobConditionType) bool {
	c := condition(status, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// isFinished reports whether a job has ended for good. Only completionTime shows that for all jobs: another project's
// CRD drops the phase, and a job of v1alpha2 has no condition for success.
func isFinished(status *kubeflowv1.JobStatus) bool {
	return status != nil && status.CompletionTime != nil
}

// IsFinished is isFinished, for package kubeflowjobs.
func IsFinished(status *kubeflowv1.JobStatus) bool { return isFinished(status) }

// set sets a condition, and reports whether anything changed. A condition that has the status and the reason already
// stays as it is. A changed condition moves to the end of the list.
func (d *decision) set(t kubeflowv1.JobConditionType, status corev1.ConditionStatus, reason, message string) bool {
	changed := kubeflowv1.JobCondition{
		Type: t, Status: status, Reason: reason, Message: plan.CutMessage(message),
		LastUpdateTime: d.now, LastTransitionTime: d.now,
	}
	if old := condition(d.next, t); old != nil {
		if old.Status == status && old.Reason == reason {
			return false
		}
		if old.Status == status {
			changed.LastTransitionTime = old.LastTransitionTime
		}
	}
	d.drop(t)
	d.next.Conditions = append(d.next.Conditions, changed)
	return true
}

// drop takes a condition out.
func (d *decision) drop(t kubeflowv1.JobConditionType) {
	d.next.Conditions = slices.DeleteFunc(d.next.Conditions, func(c kubeflowv1.JobCondition) bool { return c.Type == t })
}

// enter sets a condition of a v1 job to True, and records an event. Running and Restarting exclude each other.
// Succeeded and Failed set both to False, if the job has them.
func (d *decision) enter(t kubeflowv1.JobConditionType, message string) bool {
	return d.enterFor(t, string(t), message)
}

// enterFor is enter, for a reason that may be another than the type.
func (d *decision) enterFor(t kubeflowv1.JobConditionType, reason, message string) bool {
	if !d.set(t, corev1.ConditionTrue, d.kind.reason(reason), message) {
		return false
	}
	switch t {
	case kubeflowv1.JobConditionRunning:
		d.drop(kubeflowv1.JobConditionRestarting)
	case kubeflowv1.JobConditionRestarting:
		d.drop(kubeflowv1.JobConditionRunning)
	case kubeflowv1.JobConditionSucceeded, kubeflowv1.JobConditionFailed:
		d.settleCondition(kubeflowv1.JobConditionRunning)
		d.settleCondition(kubeflowv1.JobConditionRestarting)
	}
	if t != kubeflowv1.JobConditionCreated {
		d.Tell(t == kubeflowv1.JobConditionFailed, d.kind.reason(reason), "%s", message)
	}
	return true
}

// settleCondition turns a condition to False without moving the condition.
func (d *decision) settleCondition(t kubeflowv1.JobConditionType) {
	if c := condition(d.next, t); c != nil && c.Status != corev1.ConditionFalse {
		c.Status, c.LastUpdateTime, c.LastTransitionTime = corev1.ConditionFalse, d.now, d.now
	}
}
