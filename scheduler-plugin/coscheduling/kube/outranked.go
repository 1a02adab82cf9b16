// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// lookShare limits the time spent on listing the Pods that may outrank gangs to 1/lookShare of all time.
const lookShare = 50

// outlook caches the highest priority of the ordinary Pods that wait in kube-scheduler's own queue. The queue only
// offers a list of all active Pods, which is expensive if there are tens of thousands. So outlook does not read the
// list after each gang's cycle. The zero value is ready to use.
type outlook struct {
	mu sync.Mutex
	// highest is the highest priority in the list when it was last read. came is the highest priority of the Pods added
	// since.
	highest, came int64
	// good is until when no new look is needed if no Pod was added.
	good time.Time
}

// nobody is a priority lower than any Pod can have.
const nobody = math.MinInt64

// note records that an ordinary Pod was added to the queue.
func (o *outlook) note(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.came = max(o.came, int64(corev1helpers.PodPriority(pod)))
}

// outranks reports whether a Pod of higher priority than the given one waits to be scheduled. As list is expensive,
// outranks does not call it each time: a Pod that only a new list would show is noticed after at most lookShare times
// as long as list takes.
func (o *outlook) outranks(priority int32, list func() []*corev1.Pod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	least := int64(priority) + 1
	began := time.Now()
	if began.Before(o.good) && o.highest < least && o.came < least {
		return false
	}
	// Pods that are added from now on may be missing in the list.
	o.highest, o.came = nobody, nobody
	o.mu.Unlock()
	pods := list()
	o.mu.Lock()
	for _, pod := range pods {
		if !isWakeUp(pod) {
			o.highest = max(o.highest, int64(corev1helpers.PodPriority(pod)))
		}
	}
	now := time.Now()
	o.good = now.Add(lookShare * now.Sub(began))
	return o.highest >= least
}

// Outranked reports whether an ordinary Pod with a higher priority than the given one waits to be scheduled. Call it
// only on the scheduling goroutine.
func (q *PodQueue) Outranked(priority int32) bool {
	return q.outlook.outranks(priority, q.PodsInActiveQ)
}
