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

// PodQueue wraps kube-scheduler's own scheduling queue, which is called the real queue here. It keeps the members of
// gangs out of the real queue, and reports events to the gangs. The scheduler calls the methods of SchedulingQueue.
//
// At each event, the real queue looks at each waiting Pod under its lock. With thousands of members this would be most
// of the scheduler's work, and useless, because members wait for their gang. Wake-up entries in the real queue give
// gangs their turn among ordinary Pods.
//
// PodQueue does not tell anybody about members that come: package gangs hears of Pods from an informer of the plugin.
//
// Lock order: mu, then the real queue's lock, then the locks of the functions below.
type PodQueue struct {
	internalqueue.SchedulingQueue
	// WakeUps are the wake-up entries in the real queue.
	WakeUps *WakeUps
	// keepsOut reports whether a Pod is a member that the plugin places. If the answer changes although the Pod has not
	// changed, Settle has to be called.
	keepsOut func(pod *corev1.Pod) bool
	// happened is called for events.
	happened func(event fwk.ClusterEvent, before, after any)
	// gone is called for Pods that were deleted and were never observed on a node. It may also be called for a bound
	// Pod.
	gone func(pod *corev1.Pod)
	// waits reports whether a Pod exists and is not bound, according to the scheduler's informer.
	waits func(pod *corev1.Pod) bool
	// outlook answers whether gangs are outranked.
	outlook outlook

	nominations nominations

	mu sync.Mutex
	// members are the waiting members: the scheduler has observed them, but has not observed yet that they were bound
	// or deleted.
	members map[types.UID]*corev1.Pod
}

// KeepOut wraps the scheduler's queue. The wrapper keeps a Pod out of the queue if keepsOut returns true for it. The
// wrapper calls `happened` for each event, after the scheduler's cache has the change, and calls `gone` for Pods that
// were deleted and were never observed on a node. Call KeepOut before the scheduler runs.
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
		// Settle may have run just before; without this check nobody would ever release the Pod.
		if q.keepsOut(pod) || !q.Forget(pod) {
			return
		}
	}
	q.SchedulingQueue.Add(ctx, pod)
	q.noteNominated(pod)
	q.outlook.note(pod)
}

// Update implements SchedulingQueue. A Pod may become a member, or cease to be a member. After a broken watch, `before`
// and `after` may be two Pods with the same name.
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

// Delete implements SchedulingQueue. The scheduler also calls Delete for a Pod that was bound. After a broken watch,
// that may be another Pod with the same name.
func (q *PodQueue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.Forget(pod)
	q.SchedulingQueue.Delete(logger, pod)
	if pod.Spec.NodeName == "" {
		q.gone(pod)
	}
}

// AddUnschedulablePodIfNotPresent implements SchedulingQueue. The scheduler calls it to return a member that could not
// be bound; the gang knows of the failure already. The member may have been deleted before, and the deletion reported.
func (q *PodQueue) AddUnschedulablePodIfNotPresent(logger klog.Logger, info *framework.QueuedPodInfo, cycle int64) error {
	if q.keepsOut(info.Pod) {
		q.keep(info.Pod)
		// Settle may have run just before; without this check nobody would ever release the Pod.
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

// MoveAllToActiveOrBackoffQueue implements SchedulingQueue. The scheduler calls it for each event, after the cache has
// the change. All gangs get the event, including one that is in its cycle, so no event during a cycle is missed.
func (q *PodQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any,
	preCheck internalqueue.PreEnqueueCheck) {
	if q.isDenomination(event, oldObj, preCheck) {
		return
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, preCheck)
	q.happened(event, oldObj, newObj)
}

// isDenomination reports whether an event only says that a waiting member is no longer nominated for a node.
// kube-scheduler treats such an event like the end of a Pod there, and tries all Pods again. That would be wrong,
// because the gang still has the member's room, and reports itself when the room is free. With a thousand members it
// would also be expensive.
//
// A real deletion has no preCheck: kube-scheduler passes none for a member that is gone. The Pod's node does not tell
// the two apart, because after a broken watch the last seen state of a deleted member may be from before the binding.
func (q *PodQueue) isDenomination(event fwk.ClusterEvent, before any, preCheck internalqueue.PreEnqueueCheck) bool {
	pod, ok := before.(*corev1.Pod)
	return ok && event == framework.EventAssignedPodDelete && preCheck != nil && pod.Spec.NodeName == "" && q.keepsOut(pod)
}

// PendingPods implements SchedulingQueue: members wait, too, and wake-up entries do not.
func (q *PodQueue) PendingPods() ([]*corev1.Pod, string) {
	pods, summary := q.SchedulingQueue.PendingPods()
	members := q.Members()
	return append(slices.DeleteFunc(pods, isWakeUp), members...), fmt.Sprintf("%s; members of gangs:%d", summary, len(members))
}

// Members returns the waiting members, as far as the scheduler has observed them.
func (q *PodQueue) Members() []*corev1.Pod {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Collect(maps.Values(q.members))
}

// keep records a waiting member. In kube-scheduler's metrics the member counts as gated, as if it were in the real
// queue and held back there.
func (q *PodQueue) keep(pod *corev1.Pod) {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	q.members[pod.UID] = pod
	q.mu.Unlock()
	if !known {
		CountGated(1)
	}
}

// OfferRoom reports to kube-scheduler's own queue, but not to gangs, that a Pod has ended on its node.
func (q *PodQueue) OfferRoom(logger klog.Logger, ended *corev1.Pod) {
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, ended, nil, nil)
}

// Settle moves a waiting Pod to where the Pod belongs: to members if keepsOut returns true, else to kube-scheduler's
// own queue. Call it when keepsOut may have changed its answer although the Pod has not changed. If the Pod is being
// scheduled just now, that continues.
func (q *PodQueue) Settle(ctx context.Context, pod *corev1.Pod) {
	if q.keepsOut(pod) {
		q.SchedulingQueue.Delete(klog.FromContext(ctx), pod)
		q.keep(pod)
		if !q.waits(pod) {
			q.Forget(pod)
		}
	}
	// The Pod may have become an ordinary one just before it was kept.
	if !q.keepsOut(pod) && q.Forget(pod) && q.waits(pod) {
		q.Add(ctx, pod)
	}
}

// Forget removes a Pod from the waiting members, and reports whether it was one.
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
