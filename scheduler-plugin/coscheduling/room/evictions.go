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

// Evictions are the Pods that are being evicted, but may not show it yet. With them it is
// known until when a Pod should have ended. And they are the Pods that could not be evicted, which
// nobody tries for a while. It is safe for concurrent use, and the zero Evictions are none.
type Evictions struct {
	mu    sync.Mutex
	until map[types.UID]time.Time
	// refused is until when nobody tries to evict a Pod again.
	refused map[types.UID]time.Time
}

// Add notes that Pods are told to end now.
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

// Refused notes that a Pod can't be evicted until a time.
func (e *Evictions) Refused(pod *corev1.Pod, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused == nil {
		e.refused = make(map[types.UID]time.Time)
	}
	e.refused[pod.UID] = until
}

// IsRefused says whether a Pod can't be evicted for now.
func (e *Evictions) IsRefused(pod *corev1.Pod, now time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return now.Before(e.refused[pod.UID])
}

// Remove notes that a Pod is not being evicted any more.
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
			end = victims.ToldAt(pod.GetPod(), now)
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
	return times.Later(end, victims.EndOf(pod))
}
