// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// EventsToRegister names the events that may help a gang that found no place:
// anything that frees or adds room or changes what a node admits, and the
// objects that volumes and claims wait for. What the gang is short of may be any
// plugin's concern, so these are the events of all default Filter plugins.
//
// For a gang the hint never answers Queue. The gang's own back-off decides when it is tried
// again, and the engine then activates the leader; the queue's back-off on top
// of it would make gangs wait twice. So a PodGroup needs no event here either,
// and the plugin starts where its CRD is missing: a kind of a CRD would go
// through the dynamic informers, for which the scheduler waits before it starts.
func (c *Coscheduling) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	events := []fwk.ClusterEvent{
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
	hints := make([]fwk.ClusterEventWithHint, len(events))
	for i, event := range events {
		hint := c.awakenGang
		switch {
		case event.Resource == fwk.AssignedPod && event.ActionType&fwk.Add != 0:
			hint = c.awakenGangWithAffinity
		case event.Resource == fwk.AssignedPod:
			hint = c.awakenGangForRoom
		case event.Resource == fwk.Node:
			hint = c.awakenGangForNode
		}
		hints[i] = fwk.ClusterEventWithHint{Event: event, QueueingHintFn: hint}
	}
	return hints, nil
}

// awakenGang is a queueing hint; see EventsToRegister for what it answers. An
// ordinary Pod is here because it had to leave room for a gang. It is tried again
// at each of these events, for the few seconds that the room is held.
func (c *Coscheduling) awakenGang(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if _, member := gangKey(pod); !member {
		return fwk.Queue, nil
	}
	if c.engine != nil {
		c.engine.tracker.hint(pod)
	}
	return fwk.QueueSkip, nil
}

// awakenGangForRoom is awakenGang for a Pod that has ended or shrunk: how much it
// leaves is compared with what the gang lacks.
func (c *Coscheduling) awakenGangForRoom(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	ended, ok := oldObj.(*corev1.Pod)
	if _, member := gangKey(pod); !member || !ok || newObj != nil || c.engine == nil {
		return c.awakenGang(logger, pod, oldObj, newObj)
	}
	c.engine.tracker.hintPod(pod, ended)
	return fwk.QueueSkip, nil
}

// awakenGangForNode is awakenGang for a node, which may be too small for any
// member.
func (c *Coscheduling) awakenGangForNode(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	node, ok := newObj.(*corev1.Node)
	if _, member := gangKey(pod); !member || !ok || c.engine == nil {
		return c.awakenGang(logger, pod, oldObj, newObj)
	}
	c.engine.tracker.hintNode(pod, node)
	return fwk.QueueSkip, nil
}

// awakenGangWithAffinity is awakenGang for a Pod that was placed, which takes
// room and can help only members that want to be near others. Each binding in
// the cluster is such an event.
func (c *Coscheduling) awakenGangWithAffinity(logger klog.Logger, pod *corev1.Pod, oldObj, newObj any) (fwk.QueueingHint, error) {
	if _, member := gangKey(pod); !member {
		return fwk.QueueSkip, nil // it takes room
	}
	if affinity := pod.Spec.Affinity; affinity == nil || affinity.PodAffinity == nil {
		return fwk.QueueSkip, nil
	}
	return c.awakenGang(logger, pod, oldObj, newObj)
}
