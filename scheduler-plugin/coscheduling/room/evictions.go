// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// EvictionPatience is how long a Pod that is being deleted may outlast its grace
// period before nobody counts on its end any more: its node may be gone.
const EvictionPatience = 30 * time.Second

// maxGracePeriod is the longest grace period that is told from a longer one.
const maxGracePeriod = 10 * 365 * 24 * time.Hour

// Evictions are the Pods that are being evicted, but may not show it yet. With them it is
// known until when a Pod should have ended. It is safe for concurrent use, and the zero
// Evictions are none.
type Evictions struct {
	mu    sync.Mutex
	until map[types.UID]time.Time
}

// Add notes that Pods are evicted, and until when they should have ended.
func (e *Evictions) Add(pods []*corev1.Pod, now, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid, end := range e.until {
		if now.After(end) {
			delete(e.until, uid)
		}
	}
	if e.until == nil {
		e.until = make(map[types.UID]time.Time)
	}
	for _, pod := range pods {
		e.until[pod.UID] = until
	}
}

// Remove notes that a Pod could not be evicted.
func (e *Evictions) Remove(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.until, pod.UID)
}

// IsLeaving says whether a Pod ends soon, without anybody doing more.
func (e *Evictions) IsLeaving(pod *corev1.Pod, now time.Time) bool {
	return now.Before(e.endOf(pod))
}

// GoneBy is when Pods that are ending should all have ended, and not before now.
func (e *Evictions) GoneBy(leaving []fwk.PodInfo, now time.Time) time.Time {
	end := now
	for _, pod := range leaving {
		end = later(end, e.endOf(pod.GetPod()))
	}
	return end
}

// endOf is until when a Pod should have ended, zero if nobody has told it to.
func (e *Evictions) endOf(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp != nil {
		// That is the time of the request plus the grace period.
		return pod.DeletionTimestamp.Add(EvictionPatience)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.until[pod.UID]
}

// gracePeriod is how long a Pod may take to end when it is deleted.
func gracePeriod(pod *corev1.Pod) time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = max(0, min(*s, int64(maxGracePeriod/time.Second)))
	}
	return time.Duration(seconds) * time.Second
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
