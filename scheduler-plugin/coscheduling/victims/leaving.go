// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EvictionPatience is how long after its grace period a Pod may still run before the scheduler no longer expects it to
// end. The Pod's node may be gone.
const EvictionPatience = 30 * time.Second

// LongestWait is the longest grace period for which the scheduler waits; of a longer one, only this much counts. A Pod
// may have a grace period of years, and room is not kept for so long. The cluster autoscaler waits for a Pod as long by
// default.
const LongestWait = 10 * time.Minute

// EndOf returns the time by which a Pod that is being deleted should have ended, zero if the Pod is not being deleted.
// After that time the scheduler no longer expects the Pod to end.
func EndOf(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	// The deletion timestamp is the time of the request plus the grace period.
	excess := gracePeriod(pod) - min(gracePeriod(pod), LongestWait)
	return pod.DeletionTimestamp.Add(EvictionPatience - excess)
}

// ToldAt returns the time by which a Pod should have ended if its deletion is requested at the given time.
func ToldAt(pod *corev1.Pod, at time.Time) time.Time {
	return at.Add(min(gracePeriod(pod), LongestWait) + EvictionPatience)
}

// gracePeriod returns how long a Pod may take to end once deleted.
func gracePeriod(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	for _, s := range []*int64{pod.Spec.TerminationGracePeriodSeconds, pod.DeletionGracePeriodSeconds} {
		if s != nil {
			seconds = max(0, min(*s, int64(math.MaxInt64/time.Second)))
		}
	}
	return time.Duration(seconds) * time.Second
}
