// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// EvictionPatience is how long a Pod that is being deleted may outlast its grace
// period before nobody counts on its end any more: its node may be gone.
const EvictionPatience = 30 * time.Second

// LongestWait is for how much of a grace period a Pod's end is counted on. A Pod may have one
// of years, and nobody's room is to be kept for so long. A cluster autoscaler waits as long
// for a Pod, by default.
const LongestWait = 10 * time.Minute

// Evictions are the Pods that are being evicted, but may not show it yet. With them it is
// known until when a Pod should have ended. It is safe for concurrent use, and the zero
// Evictions are none.
type Evictions struct {
	mu    sync.Mutex
	until map[types.UID]time.Time
}

// Add notes that Pods are told to end now.
func (e *Evictions) Add(pods []*corev1.Pod, now time.Time) {
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
		e.until[pod.UID] = toldAt(pod, now)
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

// GoneBy is when Pods should all have ended, and not before now. Those that are not ending
// are told to now.
func (e *Evictions) GoneBy(pods []fwk.PodInfo, now time.Time) time.Time {
	gone := now
	for _, pod := range pods {
		end := e.endOf(pod.GetPod())
		if end.IsZero() {
			end = toldAt(pod.GetPod(), now)
		}
		gone = times.Later(gone, end)
	}
	return gone
}

// endOf is until when a Pod should have ended, zero if nobody has told it to.
//
// Of a Pod that was told to by this scheduler, its own clock counts as well: that of the
// API server may be behind.
func (e *Evictions) endOf(pod *corev1.Pod) time.Time {
	e.mu.Lock()
	end := e.until[pod.UID]
	e.mu.Unlock()
	if pod.DeletionTimestamp != nil {
		// That is the time of the request plus the grace period.
		excess := gracePeriod(pod) - min(gracePeriod(pod), LongestWait)
		end = times.Later(end, pod.DeletionTimestamp.Add(EvictionPatience-excess))
	}
	return end
}

// toldAt is until when a Pod should have ended that is told to at a time.
func toldAt(pod *corev1.Pod, at time.Time) time.Time {
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
