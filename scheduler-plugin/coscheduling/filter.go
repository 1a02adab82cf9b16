// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// claimsKey is where PreFilter leaves claimsAhead for Filter.
const claimsKey fwk.StateKey = Name + "/claims"

// claimsAhead are an ordinary Pod's request, and the claims that it has to leave
// alone. They do not change.
type claimsAhead struct {
	request fwk.Resource
	claims  []room.Claim
}

// Clone returns the same, which nobody changes.
func (c *claimsAhead) Clone() fwk.StateData {
	return c
}

// PreFilter has the plugin skip Filter, so that it costs ordinary Pods nothing,
// unless room is kept for a gang that is ahead of the Pod. Members of gangs find
// claims in their cycle's snapshot instead.
func (c *Coscheduling) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if c.engine == nil || c.isMember(pod) {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	ahead := c.engine.room.AheadOfPod(pod)
	if len(ahead) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("reading affinity of %s: %w", pod.Name, err))
	}
	state.Write(claimsKey, &claimsAhead{request: info.CalculateResource().Resource, claims: ahead})
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
func (c *Coscheduling) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(claimsKey)
	if err != nil {
		return nil // there is no claim
	}
	leaves, ok := data.(*claimsAhead)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("reading what is kept: got a %T", data))
	}
	if !room.MayTake(leaves.request, info, leaves.claims) {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) had room that is held for a pod group")
	}
	return nil
}
