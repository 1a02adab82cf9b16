// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EvictionPatience is how long a Pod that is being deleted may outlast its grace
// period before nobody counts on its end any more: its node may be gone.
const EvictionPatience = 30 * time.Second

// LongestWait is for how much of a grace period a Pod's end is counted on. A Pod may have one
// of years, and nobody's room is to be kept for so long. A cluster autoscaler waits as long
// for a Pod, by default.
const LongestWait = 10 * time.Minute

// EndOf is until when a Pod should have ended that is being deleted, zero if it is not. After that nobody counts on it.
func EndOf(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	// That is the time of the request plus the grace period.
	excess := gracePeriod(pod) - min(gracePeriod(pod), LongestWait)
	return pod.DeletionTimestamp.Add(EvictionPatience - excess)
}

// ToldAt is until when a Pod should have ended that is told to at a time.
func ToldAt(pod *corev1.Pod, at time.Time) time.Time {
	return at.Add(min(gracePeriod(pod), LongestWait) + EvictionPatience)
}

// gracePeriod is how long a Pod may take to end when it is deleted, or has if it is.
func gracePeriod(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	for _, s := range []*int64{pod.Spec.TerminationGracePeriodSeconds, pod.DeletionGracePeriodSeconds} {
		if s != nil {
			seconds = max(0, min(*s, int64(math.MaxInt64/time.Second)))
		}
	}
	return time.Duration(seconds) * time.Second
}
