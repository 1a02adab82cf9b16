// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/ends"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/maintenance"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// requestKey is the key under which PreFilter stores a request in the CycleState for Filter. PreFilter does so only if
// a reservation or planned maintenance concerns the Pod.
const requestKey fwk.StateKey = Name + "/request"

// request is what an ordinary Pod requests, with its Taker. It never changes.
type request struct {
	provision.Amounts
	room.Taker
	// maintained reports that the Pod must not run on a node during maintenance. until is when the Pod ends if it
	// starts now, zero if unknown.
	maintained bool
	until      time.Time
}

// Clone returns r itself, which never changes.
func (r *request) Clone() fwk.StateData {
	return r
}

// PreFilter returns Skip, so that Filter costs an ordinary Pod nothing, unless a gang ahead of the Pod has a
// reservation or nodes have a planned maintenance. It also returns Skip for members of gangs, which respect
// reservations in their own cycle.
func (c *Coscheduling) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if c.engine == nil || c.isMember(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	isMaintained := c.engine.windows.Any() && !room.IsOfDaemonSet(pod)
	if c.engine.room.IsEmpty() && !isMaintained {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	until := ends.OfPod(pod, time.Now()).Until(c.engine.estimates)
	taker := room.PodTaker(pod, until)
	if !isMaintained && !c.engine.room.KeepsFrom(taker) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("reading affinity of %s: %w", pod.Name, err))
	}
	state.Write(requestKey, &request{room.TakesOf(info), taker, isMaintained, until})
	return nil, nil
}

// PreFilterExtensions returns nil: other Pods on a node do not change a request.
func (c *Coscheduling) PreFilterExtensions() fwk.PreFilterExtensions {
	return nil
}

// Filter keeps ordinary Pods out of reservations of gangs ahead of them, and away from nodes with a planned
// maintenance.
//
// A PreFilterResult can't replace Filter, because kube-scheduler ignores the result in two cases: for the node for
// which a Pod is nominated, and for the node on which an equal Pod was just placed.
func (c *Coscheduling) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(requestKey)
	if err != nil {
		return nil // nothing concerns the Pod
	}
	of, ok := data.(*request)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("reading what the Pod requests: got a %T", data))
	}
	if of.maintained && maintenance.Closes(info.Node(), of.until) {
		return fwk.NewStatus(fwk.Unschedulable, place.Closed)
	}
	if !c.engine.room.MayTake(of.Taker, of.Amounts, info) {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) had resources that are reserved for a pod group")
	}
	return nil
}
