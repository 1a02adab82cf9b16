// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// Evictions records the Pods that are being evicted, each with the time by which it should have ended. A Pod is
// recorded before it shows the eviction itself. Evictions also records the Pods that could not be evicted, so that the
// scheduler does not retry for a while. Safe for concurrent use; the zero value is empty.
type Evictions struct {
	mu    sync.RWMutex
	until map[types.UID]time.Time
	// refused has, by UID, the time until which the scheduler does not try again to evict a Pod.
	refused map[types.UID]time.Time
}

// Add records that Pods are evicted now.
func (e *Evictions) Add(pods []*corev1.Pod, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	isOver := func(_ types.UID, end time.Time) bool { return now.After(end) }
	maps.DeleteFunc(e.until, isOver)
	maps.DeleteFunc(e.refused, isOver)
	if e.until == nil {
		e.until = make(map[types.UID]time.Time)
	}
	for _, pod := range pods {
		e.until[pod.UID] = victims.ToldAt(pod, now)
	}
}

// Refused records that a Pod can't be evicted until a time.
func (e *Evictions) Refused(pod *corev1.Pod, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused == nil {
		e.refused = make(map[types.UID]time.Time)
	}
	e.refused[pod.UID] = until
}

// RefusedUntil returns until when a Pod can't be evicted, zero if it may be evicted now.
func (e *Evictions) RefusedUntil(pod *corev1.Pod, now time.Time) time.Time {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if until := e.refused[pod.UID]; now.Before(until) {
		return until
	}
	return time.Time{}
}

// Remove records that a Pod is no longer being evicted.
func (e *Evictions) Remove(pod *corev1.Pod) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.until, pod.UID)
}

// IsLeaving reports whether a Pod is expected to end soon without further action.
func (e *Evictions) IsLeaving(pod *corev1.Pod, now time.Time) bool {
	return now.Before(e.endOf(pod))
}

// GoneBy returns when the last of the Pods should have ended, never before now. For a Pod that is not ending, the time
// is as if it were evicted now.
func (e *Evictions) GoneBy(pods []fwk.PodInfo, now time.Time) time.Time {
	gone := now
	for _, pod := range pods {
		end := e.endOf(pod.GetPod())
		if end.IsZero() {
			end = victims.ToldAt(pod.GetPod(), now)
		}
		gone = times.Later(gone, end)
	}
	return gone
}

// endOf returns the time by which a Pod should have ended, zero if the Pod is not being deleted or evicted.
//
// If this scheduler evicts the Pod, the time is never before the one that follows from the scheduler's own clock: the
// API server's clock may be behind.
func (e *Evictions) endOf(pod *corev1.Pod) time.Time {
	e.mu.RLock()
	end := e.until[pod.UID]
	e.mu.RUnlock()
	return times.Later(end, victims.EndOf(pod))
}
