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

// requestKey is where PreFilter leaves the request of an ordinary Pod for Filter, if there are
// reservations, or nodes that are to be maintained, which the Pod has to leave alone.
const requestKey fwk.StateKey = Name + "/request"

// request is what an ordinary Pod requests, and who it is. It does not change.
type request struct {
	provision.Amounts
	room.Taker
	// maintained says that nodes are to be maintained which the Pod has to leave alone. It ends at a time if it starts now, zero if nobody
	// knows.
	maintained bool
	until      time.Time
}

// Clone returns the same, which nobody changes.
func (r *request) Clone() fwk.StateData {
	return r
}

// PreFilter has the plugin skip Filter, so that it costs ordinary Pods nothing,
// unless room is kept for a gang that is ahead of the Pod. Members of gangs find
// reservations in their cycle's snapshot instead.
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

// PreFilterExtensions returns nil: PreFilter leaves nothing that a Pod added or
// removed could change.
func (c *Coscheduling) PreFilterExtensions() fwk.PreFilterExtensions {
	return nil
}

// Filter keeps ordinary Pods from room that is kept for a gang ahead of them.
//
// It is a Filter, and no PreFilterResult, because kube-scheduler tries a nominated
// node, and the node of an equal Pod before, without a look at that result.
func (c *Coscheduling) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(requestKey)
	if err != nil {
		return nil // there is no reservation
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
