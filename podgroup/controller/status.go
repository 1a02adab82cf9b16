// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	applyschedulingv1alpha1 "github.com/lockstep-k8s/lockstep/client/applyconfiguration/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// ownStatus is the part of a PodGroup's status that this controller writes.
type ownStatus struct {
	phase                                          schedulingv1alpha1.PodGroupPhase
	members, scheduled, running, succeeded, failed int32
}

func statusOf(phase schedulingv1alpha1.PodGroupPhase, counts podgroup.Counts) ownStatus {
	return ownStatus{
		phase:     phase,
		members:   counts.Members.Total,
		scheduled: counts.Scheduled.Total,
		running:   counts.Running.Total,
		succeeded: counts.Succeeded.Total,
		failed:    counts.Failed.Total,
	}
}

func (s ownStatus) equals(status *schedulingv1alpha1.PodGroupStatus) bool {
	return s == ownStatus{
		phase:     status.Phase,
		members:   status.Members,
		scheduled: status.Scheduled,
		running:   status.Running,
		succeeded: status.Succeeded,
		failed:    status.Failed,
	}
}

func (s ownStatus) applyConfiguration() *applyschedulingv1alpha1.PodGroupStatusApplyConfiguration {
	return applyschedulingv1alpha1.PodGroupStatus().
		WithPhase(s.phase).
		WithMembers(s.members).
		WithScheduled(s.scheduled).
		WithRunning(s.running).
		WithSucceeded(s.succeeded).
		WithFailed(s.failed)
}
