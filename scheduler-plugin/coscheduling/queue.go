// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// gangQueue is the scheduling queue as the scheduler sees it. It keeps the members
// of gangs out of the real one, and tells their gangs of what happens.
//
// The real queue looks at each Pod that waits in it when something happens, under
// its lock. With thousands of members, that would be most of what a scheduler
// does, and in vain: they wait for their gang. Gangs take turns with ordinary Pods by the
// bell.
//
// Lock order: mu, then the real queue's lock, then the tracker's.
type gangQueue struct {
	internalqueue.SchedulingQueue
	tracker *tracker
	// keepsOut says whether a Pod is a member that the engine places. It never
	// changes in the life of a Pod, but with its labels and when it is bound.
	keepsOut func(pod *corev1.Pod) bool
	// gone is told of members that are gone, and of some that are bound.
	gone func(pod *corev1.Pod)

	mu sync.Mutex
	// members are the members that wait, by UID: those of which the scheduler has
	// heard, and not yet that they are bound or gone.
	members map[types.UID]*corev1.Pod
}

// wrap puts the queue in front of the real one.
func (q *gangQueue) wrap(real internalqueue.SchedulingQueue) internalqueue.SchedulingQueue {
	q.SchedulingQueue = real
	return q
}

// Add implements SchedulingQueue.
func (q *gangQueue) Add(ctx context.Context, pod *corev1.Pod) {
	if q.keepsOut(pod) {
		q.keep(pod)
		return
	}
	q.SchedulingQueue.Add(ctx, pod)
}

// Update implements SchedulingQueue. A Pod may become a member or cease to be one.
// After a broken watch it may be another Pod of the same name.
func (q *gangQueue) Update(ctx context.Context, before, after *corev1.Pod) {
	was, is := q.keepsOut(before), q.keepsOut(after)
	if !was && !is {
		q.SchedulingQueue.Update(ctx, before, after)
		return
	}
	if was && (!is || before.UID != after.UID) {
		q.forget(before)
	}
	if was && before.UID != after.UID {
		q.gone(before)
	}
	if !was {
		q.SchedulingQueue.Delete(klog.FromContext(ctx), before)
	}
	q.Add(ctx, after)
}

// Delete implements SchedulingQueue.
func (q *gangQueue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.forget(pod)
	q.SchedulingQueue.Delete(logger, pod)
	if q.keepsOut(pod) {
		q.gone(pod)
	}
}

// AddUnschedulablePodIfNotPresent implements SchedulingQueue. A member comes back
// if it could not be bound; its gang knows of that.
func (q *gangQueue) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	if q.keepsOut(info.Pod) {
		q.keep(info.Pod)
		q.Done(info.Pod.UID)
		return nil
	}
	return q.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
}

// MoveAllToActiveOrBackoffQueue implements SchedulingQueue: it is how the queue is
// told of an event, after the scheduler's cache was changed. It tells the gangs,
// wherever their leaders are. So a cycle that ends without a place can't miss what
// happens during it.
func (q *gangQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any,
	preCheck internalqueue.PreEnqueueCheck) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, preCheck)
	if framework.MatchAnyClusterEvent(event, q.tracker.helpful) {
		q.tracker.happened(event, oldObj, newObj)
	}
}

// PendingPods implements SchedulingQueue: members wait, too, and the bell does not.
func (q *gangQueue) PendingPods() ([]*corev1.Pod, string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pods, summary := q.SchedulingQueue.PendingPods()
	pods = slices.DeleteFunc(pods, isBell)
	for _, pod := range q.members {
		pods = append(pods, pod)
	}
	return pods, fmt.Sprintf("%s; members of gangs:%d", summary, len(q.members))
}

// keep notes a member that waits. In kube-scheduler's metrics it counts as gated,
// as it would if the real queue held it back.
func (q *gangQueue) keep(pod *corev1.Pod) {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	q.members[pod.UID] = pod
	q.mu.Unlock()
	if !known {
		kube.CountGated(1)
	}
}

// forget notes that a Pod is no member that waits, if it was one.
func (q *gangQueue) forget(pod *corev1.Pod) {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	delete(q.members, pod.UID)
	q.mu.Unlock()
	if known {
		kube.CountGated(-1)
	}
}

func isSameGang(a, b *corev1.Pod) bool {
	was, _ := podgroup.GroupOf(a)
	is, _ := podgroup.GroupOf(b)
	return was == is
}
