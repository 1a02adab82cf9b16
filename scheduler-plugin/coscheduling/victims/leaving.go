// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// EvictionPatience is how long a Pod may outlast its grace period before the scheduler stops counting on the Pod's end:
// its node may be gone.
const EvictionPatience = 30 * time.Second

// LongestWait is how much of a grace period counts at most. A Pod may have a grace period of years, and no room is to
// be kept for so long. The cluster autoscaler by default waits as long for a Pod.
const LongestWait = 10 * time.Minute

// EndOf returns by when a Pod that is being deleted should have ended, zero if the Pod is not being deleted. After that
// time the scheduler does not count on the end.
func EndOf(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		return time.Time{}
	}
	// The deletion timestamp is the time of the request plus the grace period.
	excess := gracePeriod(pod) - min(gracePeriod(pod), LongestWait)
	return pod.DeletionTimestamp.Add(EvictionPatience - excess)
}

// ToldAt returns when a Pod should have ended if its deletion is requested at a time.
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
