// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// PodQueue is the scheduling queue as the scheduler sees it, in front of the real one. It
// keeps the members of gangs out of that, and tells of what happens. What implements
// SchedulingQueue is for the scheduler to call.
//
// The real queue looks at each Pod that waits in it when something happens, under
// its lock. With thousands of members, that would be most of what a scheduler
// does, and in vain: they wait for their gang. Gangs take turns with ordinary Pods by the
// wake-up entries.
//
// Lock order: mu, then the real queue's lock, then those of whom it calls.
type PodQueue struct {
	internalqueue.SchedulingQueue
	// WakeUps is in the real queue.
	WakeUps *WakeUps
	// keepsOut says whether a Pod is a member that the plugin places. In the life of a Pod it
	// changes with the Pod, and else only before Settle is called.
	keepsOut func(pod *corev1.Pod) bool
	// happened is told of events.
	happened func(event fwk.ClusterEvent, before, after any)
	// gone is told of Pods that are gone without having been seen on a node, and of some that
	// are bound.
	gone func(pod *corev1.Pod)
	// waits says whether a Pod exists and is not bound, by the scheduler's informer.
	waits func(pod *corev1.Pod) bool
	// outlook is asked whether gangs are outranked.
	outlook outlook

	nominations nominations

	mu sync.Mutex
	// members are the members that wait: those of which the scheduler has heard, and not yet
	// that they are bound or gone.
	members map[types.UID]*corev1.Pod
}

// KeepOut puts a queue in front of the scheduler's that keeps Pods out of it, and tells
// of each event, after the scheduler's cache was changed, and of Pods that are gone without
// having been seen on a node. It comes before the scheduler runs.
func KeepOut(s *Scheduler, keepsOut func(*corev1.Pod) bool, happened func(event fwk.ClusterEvent, before, after any),
	gone func(*corev1.Pod)) *PodQueue {
	q := newQueue(s.sched.SchedulingQueue, keepsOut, happened, gone, s.waits)
	s.sched.SchedulingQueue = q
	s.sched.Cache = &cacheInFront{Cache: s.sched.Cache, sched: s.sched}
	return q
}

func newQueue(real internalqueue.SchedulingQueue, keepsOut func(*corev1.Pod) bool,
	happened func(event fwk.ClusterEvent, before, after any), gone func(*corev1.Pod), waits func(*corev1.Pod) bool) *PodQueue {
	return &PodQueue{SchedulingQueue: real, WakeUps: &WakeUps{queue: real}, keepsOut: keepsOut, members: make(map[types.UID]*corev1.Pod), happened: happened, gone: gone, waits: waits}
}

// Add implements SchedulingQueue.
func (q *PodQueue) Add(ctx context.Context, pod *corev1.Pod) {
	if q.keepsOut(pod) {
		q.keep(pod)
		// Else it would be kept by nobody's will, if Settle was there just before.
		if q.keepsOut(pod) || !q.Forget(pod) {
			return
		}
	}
	q.SchedulingQueue.Add(ctx, pod)
	q.noteNominated(pod)
	q.outlook.note(pod)
}

// Update implements SchedulingQueue. A Pod may become a member or cease to be one.
// After a broken watch it may be another Pod of the same name.
func (q *PodQueue) Update(ctx context.Context, before, after *corev1.Pod) {
	if before.UID != after.UID {
		q.Delete(klog.FromContext(ctx), before)
		q.Add(ctx, after)
		return
	}
	was, is := q.keepsOut(before), q.keepsOut(after)
	if !was && !is {
		q.SchedulingQueue.Update(ctx, before, after)
		q.noteNominated(after)
		q.outlook.note(after)
		return
	}
	if was && !is {
		q.Forget(before)
	}
	if !was {
		q.SchedulingQueue.Delete(klog.FromContext(ctx), before)
	}
	q.Add(ctx, after)
}

// Delete implements SchedulingQueue. If a Pod is bound it is told, too, and after a broken
// watch the one that is bound may be another Pod of the same name.
func (q *PodQueue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.Forget(pod)
	q.SchedulingQueue.Delete(logger, pod)
	if pod.Spec.NodeName == "" {
		q.gone(pod)
	}
}

// AddUnschedulablePodIfNotPresent implements SchedulingQueue. A member comes back
// if it could not be bound; its gang knows of that. It may have gone meanwhile, and its
// deletion have been told before.
func (q *PodQueue) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	if q.keepsOut(info.Pod) {
		q.keep(info.Pod)
		// Else it would be kept by nobody's will, if Settle was there just before.
		if q.keepsOut(info.Pod) || !q.Forget(info.Pod) {
			if !q.waits(info.Pod) {
				q.Forget(info.Pod)
			}
			q.Done(info.Pod.UID)
			return nil
		}
	}
	defer q.outlook.note(info.Pod)
	return q.SchedulingQueue.AddUnschedulablePodIfNotPresent(logger, info, cycle)
}

// MoveAllToActiveOrBackoffQueue implements SchedulingQueue: it is how the queue is
// told of an event, after the scheduler's cache was changed. It tells the gangs,
// wherever they wait. So a cycle that ends without a place can't miss what
// happens during it.
func (q *PodQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any,
	preCheck internalqueue.PreEnqueueCheck) {
	if q.isDenomination(event, oldObj, preCheck) {
		return
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, preCheck)
	q.happened(event, oldObj, newObj)
}

// isDenomination says whether all that has happened is that a member which waits is not
// nominated for a node any more. kube-scheduler takes that for the end of a Pod there. But
// what is kept for members is kept by their gang, which tells when it is not, and of a
// thousand members each would have everybody be tried again.
//
// kube-scheduler checks then which Pods are to be tried. It does not where a member has really gone. That member may
// have no node here either: when the watch was broken, the last state that was seen is from before the binding.
func (q *PodQueue) isDenomination(event fwk.ClusterEvent, before any, preCheck internalqueue.PreEnqueueCheck) bool {
	pod, ok := before.(*corev1.Pod)
	return ok && event == framework.EventAssignedPodDelete && preCheck != nil && pod.Spec.NodeName == "" && q.keepsOut(pod)
}

// PendingPods implements SchedulingQueue: members wait, too, and the wake-up entry does not.
func (q *PodQueue) PendingPods() ([]*corev1.Pod, string) {
	pods, summary := q.SchedulingQueue.PendingPods()
	members := q.Members()
	return append(slices.DeleteFunc(pods, isWakeUp), members...), fmt.Sprintf("%s; members of gangs:%d", summary, len(members))
}

// Members are the members that wait, as far as the scheduler has heard of them.
func (q *PodQueue) Members() []*corev1.Pod {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Values(q.members))
}

// keep notes a member that waits. In kube-scheduler's metrics it counts as gated,
// as it would if the real queue held it back.
func (q *PodQueue) keep(pod *corev1.Pod) {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	q.members[pod.UID] = pod
	q.mu.Unlock()
	if !known {
		CountGated(1)
	}
}

// OfferRoom tells the Pods of the real queue, and nobody else, that a Pod has ended on its
// node.
func (q *PodQueue) OfferRoom(logger klog.Logger, ended *corev1.Pod) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, ended, nil, nil)
}

// Settle has a Pod wait where it belongs after keepsOut may have changed, though the Pod has not: here if it is a member by
// now, and in the real queue if it is an ordinary Pod that was kept out of that. If it has its turn just now, it keeps that.
func (q *PodQueue) Settle(ctx context.Context, pod *corev1.Pod) {
	if q.keepsOut(pod) {
		q.SchedulingQueue.Delete(klog.FromContext(ctx), pod)
		q.keep(pod)
		if !q.waits(pod) {
			q.Forget(pod)
		}
	}
	// It may have become an ordinary Pod just before it was kept.
	if !q.keepsOut(pod) && q.Forget(pod) && q.waits(pod) {
		q.Add(ctx, pod)
	}
}

// Forget notes that a Pod is no member that waits, and says whether it was one.
func (q *PodQueue) Forget(pod *corev1.Pod) bool {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	delete(q.members, pod.UID)
	q.mu.Unlock()
	if known {
		CountGated(-1)
	}
	return known
}
