// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// helpful returns the events that may help a gang without a place. Such events free or add room, change what a node
// admits, or are about objects for which volumes and claims wait. Any plugin may have refused the gang, so these are
// the events of all default Filter plugins.
func helpful() []fwk.ClusterEvent {
	return []fwk.ClusterEvent{
		// Room: a Pod ends, is deleted or shrinks; a node is added, grows, is uncordoned or gets a missing label.
		{Resource: fwk.AssignedPod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown},
		{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint | fwk.UpdateNodeDeclaredFeature},
		// Fewer domains to spread over.
		{Resource: fwk.Node, ActionType: fwk.Delete},
		// Affinity to a Pod that has just got its place or its label.
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
		{Resource: fwk.ResourceClaim, ActionType: fwk.Add | fwk.Update | fwk.Delete},
		{Resource: fwk.DeviceClass, ActionType: fwk.Add | fwk.Update},
		{Resource: fwk.ResourceSlice, ActionType: fwk.Add | fwk.Update},
	}
}

// heard returns a function that passes helpful events on to gangs, including gangs in their cycle. So no event during a
// cycle is missed. If a node changes on which room is reserved, the gang looks whether it still has its place there.
func heard(by *gangs.Gangs, reserved *room.Room) func(event fwk.ClusterEvent, before, after any) {
	events := append(helpful(), ofMaintenance)
	return func(event fwk.ClusterEvent, before, after any) {
		if !framework.MatchAnyClusterEvent(event, events) || isIdle(event, before, after) {
			return
		}
		happened(by, event, before, after)
		node, ok := after.(*corev1.Node)
		if !ok {
			node, ok = before.(*corev1.Node)
		}
		if ok {
			for _, gang := range reserved.GangsOn(node.Name) {
				by.Wake(gang)
			}
		}
	}
}

// EventsToRegister returns the events that the plugin needs. PodGroups are not among them, so that the plugin starts
// without their CRD: the scheduler would wait for the informer of a custom resource before it starts.
func (c *Coscheduling) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	events := helpful()
	hints := make([]fwk.ClusterEventWithHint, len(events))
	for i, event := range events {
		hints[i] = fwk.ClusterEventWithHint{Event: event, QueueingHintFn: c.retryOrdinary}
		if isPlacing(event) {
			hints[i].QueueingHintFn = retryNobody
		}
	}
	return append(hints, fwk.ClusterEventWithHint{Event: ofMaintenance, QueueingHintFn: retryUnmaintained}), nil
}

// retryOrdinary is the queueing hint for an ordinary Pod that had to leave room for a gang: each event lets the Pod try
// again. Gangs get their events from kube.PodQueue instead.
func (c *Coscheduling) retryOrdinary(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if c.isMember(pod) {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// retryNobody is the queueing hint for the event that a Pod was placed. The event frees no room, so no Pod is retried.
func retryNobody(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) {
	return fwk.QueueSkip, nil
}

func isPlacing(event fwk.ClusterEvent) bool {
	return event.Resource == fwk.AssignedPod && event.ActionType&fwk.Add != 0
}

// happened passes an event on to gangs.
func happened(to *gangs.Gangs, event fwk.ClusterEvent, oldObj, newObj any) {
	kind := kindOf(to, event, oldObj, newObj)
	to.Happened(kind, func() queue.Event { return eventOf(to, kind, oldObj, newObj) })
}

// kindOf returns the kind that an event has for the queue. If new labels make a Pod a member of another gang, the event
// counts as Anything, because the Pod may now be a possible victim.
func kindOf(of *gangs.Gangs, event fwk.ClusterEvent, oldObj, newObj any) queue.EventKind {
	switch {
	case event.Resource == fwk.AssignedPod && event.ActionType == fwk.Add:
		return queue.PodPlaced
	case event.Resource == fwk.AssignedPod && event.ActionType == fwk.Delete:
		return queue.PodEnded
	case event.Resource == fwk.AssignedPod && event.ActionType == fwk.UpdatePodLabel:
		if isSameMember(of, oldObj, newObj) {
			return queue.PodRelabelled
		}
	case event.Resource == fwk.Node && event.ActionType == fwk.Delete:
		return queue.NodeGone
	case event.Resource == fwk.Node:
		return queue.NodeChanged
	}
	return queue.Anything
}

// eventOf returns the queue's event for a change of an object.
func eventOf(of *gangs.Gangs, kind queue.EventKind, oldObj, newObj any) queue.Event {
	switch kind {
	case queue.PodEnded:
		if pod, ok := oldObj.(*corev1.Pod); ok {
			event := place.PodEnded(pod)
			if _, named := of.KeyOf(pod); !named {
				event.Ordinary = new(corev1helpers.PodPriority(pod))
			}
			return event
		}
		return queue.Event{Kind: queue.Anything}
	case queue.NodeChanged:
		if node, ok := newObj.(*corev1.Node); ok {
			return place.NodeChanged(node)
		}
		return queue.Event{Kind: queue.Anything}
	}
	return queue.Event{Kind: kind}
}

// isSameMember reports whether a changed Pod is a member of the same gang in the same role as before, or was and is no
// member of any gang.
func isSameMember(of *gangs.Gangs, was, is any) bool {
	before, ok1 := was.(*corev1.Pod)
	after, ok2 := is.(*corev1.Pod)
	if !ok1 || !ok2 {
		return false
	}
	from, _ := of.KeyOf(before)
	to, _ := of.KeyOf(after)
	return from == to && to.RoleOf(before) == to.RoleOf(after)
}
