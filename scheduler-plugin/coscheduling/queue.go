// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/lockstep-k8s/lockstep/podgroup"
)

// gangQueue is the scheduling queue as the scheduler sees it. It keeps the members
// of gangs out of the real one, and tells their gangs of what happens.
//
// The real queue looks at each Pod that waits in it when something happens, under
// its lock. With thousands of members, that would be most of what a scheduler
// does, and in vain: they wait for their gang. So only the leader of a gang that
// is to be planned enters the real queue, for its place in line, and leaves it
// with its turn.
//
// Lock order: mu, then the real queue's lock, then the tracker's.
type gangQueue struct {
	internalqueue.SchedulingQueue
	tracker *tracker
	// keepsOut says whether a Pod is a member that the engine places. It never
	// changes in the life of a Pod, but with its labels and when it is bound.
	keepsOut func(pod *corev1.Pod) bool
	// seen tells of a member that is new to the queue. No queueing hint would: the
	// scheduler makes no event of Pods that are added, unless GenericWorkload is on.
	seen func(gang types.NamespacedName)

	mu sync.Mutex
	// members are the members that wait, by UID: those of which the scheduler has
	// heard, and not yet that they are bound or gone.
	members map[types.UID]*corev1.Pod
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
	if was && is && q.contains(after) && isSameGang(before, after) {
		q.SchedulingQueue.Update(ctx, before, after)
		return
	}
	if !is || before.UID != after.UID {
		q.forget(before)
	}
	q.SchedulingQueue.Delete(klog.FromContext(ctx), before)
	q.Add(ctx, after)
}

// Delete implements SchedulingQueue.
func (q *gangQueue) Delete(logger klog.Logger, pod *corev1.Pod) {
	q.forget(pod)
	q.SchedulingQueue.Delete(logger, pod)
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

// PendingPods implements SchedulingQueue: members wait, too.
func (q *gangQueue) PendingPods() ([]*corev1.Pod, string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pods, summary := q.SchedulingQueue.PendingPods()
	inLine := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		inLine[pod.UID] = true
	}
	for uid, pod := range q.members {
		if !inLine[uid] {
			pods = append(pods, pod)
		}
	}
	return pods, fmt.Sprintf("%s; members of gangs:%d", summary, len(q.members))
}

// lineUp puts the leader of a gang in line for its turn, unless it stands there.
// A member that the scheduler has not heard of, or whose end it has seen, stays
// out; of the former, seen tells when it is time.
func (q *gangQueue) lineUp(ctx context.Context, leader *corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if _, ok := q.members[leader.UID]; !ok {
		return
	}
	if q.contains(leader) {
		// A PreEnqueue plugin may have held it back.
		q.Activate(klog.FromContext(ctx), map[string]*corev1.Pod{leader.Namespace + "/" + leader.Name: leader})
		return
	}
	q.SchedulingQueue.Add(ctx, leader)
}

func (q *gangQueue) contains(pod *corev1.Pod) bool {
	info, ok := q.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
	return ok && info.Pod.UID == pod.UID
}

// keep notes a member that waits. In kube-scheduler's metrics it counts as gated,
// as it would if the real queue held it back.
func (q *gangQueue) keep(pod *corev1.Pod) {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	q.members[pod.UID] = pod
	q.mu.Unlock()
	if known {
		return
	}
	countGated(1)
	key, _ := podgroup.GroupOf(pod)
	q.seen(key)
}

// forget notes that a Pod is no member that waits, if it was one.
func (q *gangQueue) forget(pod *corev1.Pod) {
	q.mu.Lock()
	_, known := q.members[pod.UID]
	delete(q.members, pod.UID)
	q.mu.Unlock()
	if known {
		countGated(-1)
	}
}

func countGated(n float64) {
	metrics.GatedPods().Add(n)
	metrics.GatedEntities(metrics.Pod).Add(n)
}

func isSameGang(a, b *corev1.Pod) bool {
	was, _ := podgroup.GroupOf(a)
	is, _ := podgroup.GroupOf(b)
	return was == is
}
