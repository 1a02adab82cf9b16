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

// lookShare bounds what it costs to look for Pods that outrank gangs: it takes one part in so
// many of the time.
const lookShare = 50

// outlook is what is known of the ordinary Pods of the real queue that are to have their
// turn. That queue tells who they are only by a list of them all, which is dear where there
// are tens of thousands, so it is not asked after each turn of a gang. The zero value is that
// nothing is known.
type outlook struct {
	mu sync.Mutex
	// highest is the highest priority of those that were there at the last look, and came that
	// of those that were given to the queue since.
	highest, came int64
	// good is until when nobody need look again, if nobody came.
	good time.Time
}

// nobody is the priority of no Pod, below all others.
const nobody = math.MinInt64

// note says that an ordinary Pod was given to the queue.
func (o *outlook) note(pod *corev1.Pod) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.came = max(o.came, int64(corev1helpers.PodPriority(pod)))
}

// outranks says whether a Pod of a higher priority is to have its turn. One that is in the
// queue already and waits no more is noticed after lookShare times what a look takes.
func (o *outlook) outranks(priority int32, list func() []*corev1.Pod) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	least := int64(priority) + 1
	began := time.Now()
	if began.Before(o.good) && o.highest < least && o.came < least {
		return false
	}
	// What comes from now on may not be in the list.
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

// Outranked says whether an ordinary Pod of a higher priority is to have its turn. It is
// asked on the scheduling goroutine only.
func (q *PodQueue) Outranked(priority int32) bool {
	return q.outlook.outranks(priority, q.PodsInActiveQ)
}
