// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

// This file maintains kube-scheduler's own metrics where the plugin does kube-scheduler's work.

import (
	"strconv"
	"time"

	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// ObserveFailed counts a gang that found no place as one attempt of one Pod in kube-scheduler's metrics; the gang's
// other members count as gated. Mirrors the beginning of handleSchedulingFailure.
func ObserveFailed(profile framework.Framework, failed bool, took time.Duration) {
	if failed {
		metrics.PodScheduleError(profile.ProfileName(), took.Seconds())
		return
	}
	metrics.PodUnschedulable(profile.ProfileName(), took.Seconds())
}

// ObserveBound counts a Pod that is bound. Mirrors the end of bindingCycle and getAttemptsLabel.
func ObserveBound(profile framework.Framework, attempt Attempt) {
	metrics.PodScheduled(profile.ProfileName(), time.Since(attempt.Start).Seconds())
	metrics.PodSchedulingAttempts.Observe(float64(attempt.Number))
	label := "15+"
	if attempt.Number < 15 {
		label = strconv.Itoa(attempt.Number)
	}
	metrics.PodSchedulingSLIDuration.WithLabelValues(label).Observe(metrics.SinceInSeconds(attempt.First))
}

// ObservePreemption counts Pods that are preempted for a gang.
func ObservePreemption(victims int) {
	metrics.PreemptionAttempts.Inc()
	metrics.PreemptionVictims.Observe(float64(victims))
}

// CountGated adds to the number of Pods that are kept out of the queue. A negative number subtracts.
func CountGated(pods int) {
	metrics.GatedPods().Add(float64(pods))
	metrics.GatedEntities(metrics.Pod).Add(float64(pods))
}
