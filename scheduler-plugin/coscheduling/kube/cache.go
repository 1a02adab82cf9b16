// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// cacheInFront wraps kube-scheduler's cache, for four reasons.
//
// First, the cache exits the program when a Pod moves from one node to another, or to none. No real Pod does that. But
// after a broken watch one update may be about two Pods with the same name. And if the API server's store was restored
// from a backup, Pods appear as they were before they were bound. cacheInFront turns such an update into a deletion and
// an addition.
//
// Second, kube-scheduler reports a node's deletion to the queue before the cache forgets the node. cacheInFront reports
// the deletion again afterwards (RemoveNode).
//
// Third, after a broken watch one update may be about two waiting Pods with the same name. If the new Pod is assumed on a
// node already, kube-scheduler ignores the update, and its queue would keep the old Pod for ever. cacheInFront removes
// the old Pod from the queue (UpdatePodGroupMember).
//
// Fourth, another scheduler may bind a Pod to a node while the Pod is assumed on another node. kube-scheduler does not
// report that the assumed node has room again. cacheInFront does (AddPod).
type cacheInFront struct {
	internalcache.Cache
	sched *scheduler.Scheduler
}

// UpdatePod implements Cache. The scheduler calls it for Pods that were on a node.
func (c *cacheInFront) UpdatePod(logger klog.Logger, before, after *corev1.Pod) error {
	known, err := c.GetPod(before)
	isKnown := err == nil
	if before.UID == after.UID && after.Spec.NodeName != "" && (!isKnown || known.Spec.NodeName == after.Spec.NodeName) {
		return c.Cache.UpdatePod(logger, before, after)
	}
	logger.Info("A Pod is not on the node any more where it was, or another Pod has its name",
		"pod", klog.KObj(after), "uidBefore", before.UID, "nodeBefore", before.Spec.NodeName, "uid", after.UID, "node", after.Spec.NodeName)
	if isKnown {
		if err := c.Cache.RemovePod(logger, known); err != nil {
			return err
		}
		c.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, known, nil, nil)
	}
	switch {
	case after.Spec.NodeName != "":
		if err := c.AddPod(logger, after); err != nil {
			return err
		}
		c.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodAdd, nil, after, nil)
	case c.sched.Profiles.HandlesSchedulerName(after.Spec.SchedulerName):
		c.AddPodGroupMember(after)
		c.sched.SchedulingQueue.Add(klog.NewContext(context.Background(), logger), after)
	}
	return nil
}

// AddPod implements Cache. The scheduler calls it for Pods that have got a node.
func (c *cacheInFront) AddPod(logger klog.Logger, pod *corev1.Pod) error {
	assumed, unknown := c.GetPod(pod)
	if err := c.Cache.AddPod(logger, pod); err != nil {
		return err
	}
	if unknown == nil && assumed.Spec.NodeName != pod.Spec.NodeName {
		c.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, framework.EventAssignedPodDelete, assumed, nil, nil)
	}
	return nil
}

// UpdatePodGroupMember implements Cache. When a waiting Pod has changed, the scheduler calls this method before the
// queue is updated. If the update is about two Pods, UpdatePodGroupMember removes the old one from the queue.
func (c *cacheInFront) UpdatePodGroupMember(logger klog.Logger, before, after *corev1.Pod) {
	if before.UID != after.UID {
		c.sched.SchedulingQueue.Delete(logger, before)
	}
	c.Cache.UpdatePodGroupMember(logger, before, after)
}

// RemoveNode implements Cache. kube-scheduler reports a node's deletion to the queue before the cache forgets the node.
// A Pod or gang that is tried in between still sees the node, and nothing would make the scheduler try again. So
// RemoveNode reports the deletion again, after the cache has forgotten the node.
func (c *cacheInFront) RemoveNode(logger klog.Logger, node *corev1.Node) error {
	err := c.Cache.RemoveNode(logger, node)
	c.sched.SchedulingQueue.MoveAllToActiveOrBackoffQueue(logger, fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Delete}, node, nil, nil)
	return err
}
