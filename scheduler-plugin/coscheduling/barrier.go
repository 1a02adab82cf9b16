// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// barrierLifetime is how long a gang may have a barrier at most, in units of its
// starvationAfter.
const barrierLifetime = 10

// barrierPatience is after how many times starvationAfter a barrier ends that its gang has
// not given up although it did not grow: the gang has had no turn.
const barrierPatience = 2

// ends says whether a Pod ends by itself one day: it is not restarted for ever, or has a
// deadline. One of a Deployment, a StatefulSet or a DaemonSet does not, and a static one
// neither.
func ends(pod *corev1.Pod) bool {
	always := pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || pod.Spec.RestartPolicy == ""
	return !always || pod.Spec.ActiveDeadlineSeconds != nil
}

// bar keeps room back for the cycle's gang, which starves. It returns when to look whether
// that is of use, zero if it keeps none.
//
// A barrier stays where it is as long as it can be had: if it moved to whatever is free
// at the moment, it would take the place of a Pod that is being replaced. It is given up
// when it has not grown for starvationAfter, or has lasted for barrierLifetime.
func (c *cycle) bar(ctx context.Context) (time.Time, error) {
	now := c.tracker.now()
	before := c.holds.of(c.view.key)
	if before != nil && before.preempts {
		before = nil
	}
	if before != nil {
		left := before.remaining(c.snapshot)
		if left < before.left {
			before = before.grownTo(left, now)
			c.holds.set(c.view.key, before)
		}
		if now.Sub(before.grown) >= c.view.starvationAfter || now.Sub(before.begun) >= barrierLifetime*c.view.starvationAfter {
			return time.Time{}, nil
		}
		if left > 0 && before.stands(c.snapshot) {
			return before.grown.Add(c.view.starvationAfter), nil
		}
	}
	found, err := c.findSpace(ctx, ending(), true)
	if err != nil || found == nil {
		return time.Time{}, err
	}
	h := newBarrier(&c.view, found, now)
	if before != nil {
		h.begun, h.grown, h.until = before.begun, before.grown, before.until
	}
	c.keep(h)
	return h.grown.Add(c.view.starvationAfter), nil
}

// newBarrier is a hold for a gang that starves, until the victims of the space have
// ended by themselves.
func newBarrier(view *gangView, found *space, now time.Time) *hold {
	h := newHold(view, found.places, now.Add(barrierPatience*view.starvationAfter))
	h.preempts, h.begun, h.grown, h.patience = false, now, now, view.starvationAfter
	h.awaited = make(map[types.UID]fwk.PodInfo)
	for _, pod := range found.awaited {
		if h.byNode[pod.GetPod().Spec.NodeName] != nil {
			h.awaited[pod.GetPod().UID] = pod
		}
	}
	h.left = len(h.awaited)
	return h
}

// grownTo is the hold when fewer of the awaited Pods are left.
func (h *hold) grownTo(left int, now time.Time) *hold {
	grown := *h
	grown.left, grown.grown, grown.until = left, now, now.Add(barrierPatience*h.patience)
	return &grown
}

// remaining is how many of the awaited Pods are still there.
func (h *hold) remaining(nodes fwk.NodeInfoLister) int {
	left := 0
	for name := range h.byNode {
		node, err := nodes.Get(name)
		if err != nil {
			continue // the node is gone, and they with it
		}
		for _, pod := range node.GetPods() {
			if h.awaited[pod.GetPod().UID] != nil {
				left++
			}
		}
	}
	return left
}

// stands says whether the room is, or will be, there when the awaited Pods have ended.
func (h *hold) stands(nodes fwk.NodeInfoLister) bool {
	for name := range h.byNode {
		node, err := nodes.Get(name)
		if err != nil {
			return false
		}
		if reserved := h.reserved(node); !reserved.isFree(node) {
			return false
		}
	}
	return true
}

// reserved is what nobody else may take of a node: the room of the members that are to
// come, but for what Pods whose end is awaited still take of it. So the room that a
// service leaves when it is rolled out is for its next Pod, as it was not counted on.
func (h *hold) reserved(node fwk.NodeInfo) usage {
	var r usage
	r.add(h.byNode[node.Node().Name])
	if r.pods == 0 || len(h.awaited) == 0 {
		return r
	}
	for _, pod := range node.GetPods() {
		if awaited := h.awaited[pod.GetPod().UID]; awaited != nil {
			r.free(awaited)
		}
	}
	return r
}
