// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// helpful are the events that may help a gang that found no place: anything that
// frees or adds room or changes what a node admits, and the objects that volumes
// and claims wait for. What the gang is short of may be any plugin's concern, so
// these are the events of all default Filter plugins.
func helpful() []fwk.ClusterEvent {
	return []fwk.ClusterEvent{
		// Room: a Pod ends, is deleted or shrinks; a node comes, grows, is
		// uncordoned or gets the label that was missing.
		{Resource: fwk.AssignedPod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown},
		{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint},
		// Affinity to a Pod that is placed only now, or gets the label only now.
		{Resource: fwk.AssignedPod, ActionType: fwk.Add | fwk.UpdatePodLabel},
		// Volumes.
		{Resource: fwk.PersistentVolumeClaim, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.PersistentVolume, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.StorageClass, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.CSINode, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.CSIDriver, ActionType: fwk.Update},
		{Resource: fwk.CSIStorageCapacity, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.VolumeAttachment, ActionType: fwk.Delete},
		// Claims on devices.
		{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.DeviceClass, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update},
	}
}

// EventsToRegister names the events that the plugin wants to be told of. A
// PodGroup is not among them, so that the plugin starts where its CRD is missing:
// a kind of a CRD would go through the dynamic informers, for which the scheduler
// waits before it starts.
func (c *Coscheduling) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	events := helpful()
	hints := make([]fwk.ClusterEventWithHint, len(events))
	for i, event := range events {
		hints[i] = fwk.ClusterEventWithHint{Event: event, QueueingHintFn: retryOrdinary}
		if isPlacing(event) {
			hints[i].QueueingHintFn = retryNobody
		}
	}
	// A member that is taken out of its group is an ordinary Pod from then on, and
	// one that is moved to another may lead it.
	return append(hints, fwk.ClusterEventWithHint{
		Event:          fwk.ClusterEvent{Resource: fwk.TargetPod, ActionType: fwk.UpdatePodLabel},
		QueueingHintFn: retryMoved,
	}), nil
}

// retryOrdinary is the queueing hint for an ordinary Pod, which is here because
// it had to leave room for a gang. It is tried again at each event, as long as the
// room is held. Gangs hear of events from the eventQueue: the
// queue asks for hints neither while a leader is active nor, once the leader was
// activated in flight, when it comes back.
func retryOrdinary(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if _, member := gangKey(pod); member {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// retryMoved is the queueing hint for a Pod whose labels have changed: it may be
// another gang's leader now, or nobody's member.
func retryMoved(_ klog.Logger, _ *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	before, ok1 := oldObj.(*corev1.Pod)
	after, ok2 := newObj.(*corev1.Pod)
	if ok1 && ok2 {
		was, _ := gangKey(before)
		if is, _ := gangKey(after); was == is {
			return fwk.QueueSkip, nil
		}
	}
	return fwk.Queue, nil
}

// retryNobody is the queueing hint for a Pod that was placed: it takes room.
func retryNobody(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) {
	return fwk.QueueSkip, nil
}

func isPlacing(event fwk.ClusterEvent) bool {
	return event.Resource == fwk.AssignedPod && event.ActionType&fwk.Add != 0
}

// eventQueue is the scheduling queue, overheard: it is told of each event after
// the scheduler's cache was changed, and tells the gangs, wherever their leaders
// are. So a cycle that ends without a place can't miss what happens during it.
type eventQueue struct {
	internalqueue.SchedulingQueue
	tracker *tracker
	begun   <-chan struct{}
}

// MoveAllToActiveOrBackoffQueue is how the queue is told of an event.
//
// The queue asks of each event whether it helps each Pod that waits, under its
// lock. With many members that wait, this is most of what a scheduler would do,
// and in vain: it is for the leader to bring its gang into the queue. So only
// those are asked about whom no cycle has answered for. Before scheduling
// begins, when each of thousands of nodes is an event, nobody is; then all are,
// once (begin).
func (q *eventQueue) MoveAllToActiveOrBackoffQueue(logger klog.Logger, event fwk.ClusterEvent, oldObj, newObj any,
	preCheck internalqueue.PreEnqueueCheck) {
	select {
	case <-q.begun:
	default:
		return
	}
	q.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, event, oldObj, newObj, func(pod *corev1.Pod) bool {
		return q.tracker.hearsEvents(pod) && (preCheck == nil || preCheck(pod))
	})
	if framework.MatchAnyClusterEvent(event, q.tracker.helpful) {
		q.tracker.happened(event, oldObj, newObj)
	}
}

// begin tells the queue, once, of all that has happened before.
func (q *eventQueue) begin(logger klog.Logger) {
	q.MoveAllToActiveOrBackoffQueue(logger, framework.EventUnschedulableTimeout, nil, nil, nil)
}

// hearsEvents says whether the scheduling queue is to look at a Pod when
// something has happened: an ordinary one, or the leader of a gang that has had no
// cycle, which another plugin's PreEnqueue may hold back.
func (t *tracker) hearsEvents(pod *corev1.Pod) bool {
	key, member := gangKey(pod)
	if !member {
		return true
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || g.leader == nil {
		return true
	}
	return g.leader.UID == pod.UID && t.planned[key] == nil
}

// happened has the gangs planned again that an event may help.
func (t *tracker) happened(event fwk.ClusterEvent, oldObj, newObj any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.planned) == 0 {
		return
	}
	helps := helps(event, oldObj, newObj)
	for _, g := range t.planned {
		if !t.isAwake(g) && g.complete() && helps(&g.attempt) {
			t.markAwake(g)
			t.wake(g.key, max(0, g.attempt.notBefore.Sub(t.now())))
		}
	}
}

// helps judges an event by what the last attempt to place a gang was short of.
func helps(event fwk.ClusterEvent, oldObj, newObj any) func(*attempt) bool {
	switch {
	case event.Resource == fwk.AssignedPod && event.ActionType == fwk.Add:
		// It takes room, and can help only members that want to be near others, or
		// far from many. Each binding in the cluster is such an event.
		return func(a *attempt) bool { return a.regardsOthers }
	case event.Resource == fwk.AssignedPod && event.ActionType == fwk.Delete:
		if pod, ok := oldObj.(*corev1.Pod); ok {
			ended := newRoom(pod)
			return func(a *attempt) bool {
				if a.need.members == 0 {
					return true
				}
				a.gained += a.need.gain(ended)
				return a.gained >= a.need.members
			}
		}
	case event.Resource == fwk.Node:
		if node, ok := newObj.(*corev1.Node); ok {
			return func(a *attempt) bool { return a.need.members == 0 || a.need.admits(node) }
		}
	}
	return func(*attempt) bool { return true }
}
