// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
)

// holdsKey is where PreFilter leaves a heldAgainst for Filter.
const holdsKey fwk.StateKey = Name + "/holds"

// heldAgainst is an ordinary Pod's request, and the holds that it must leave
// alone. It does not change.
type heldAgainst struct {
	request fwk.Resource
	holds   []*hold
}

// Clone returns the same, which nobody changes.
func (h *heldAgainst) Clone() fwk.StateData {
	return h
}

// PreFilter has the plugin skip Filter, so that it costs ordinary Pods nothing,
// unless room is held for a gang that is ahead of the Pod. Members of gangs find
// held room in their cycle's snapshot instead.
func (c *Coscheduling) PreFilter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	if _, member := podgroup.GroupOf(pod); member || c.engine == nil {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	ahead := c.engine.holds.ahead(pod)
	if len(ahead) == 0 {
		return nil, fwk.NewStatus(fwk.Skip)
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, fwk.AsStatus(fmt.Errorf("reading affinity of %s: %w", pod.Name, err))
	}
	state.Write(holdsKey, &heldAgainst{request: info.CalculateResource().Resource, holds: ahead})
	return nil, nil
}

// PreFilterExtensions returns nil: PreFilter leaves nothing that a Pod added or
// removed could change.
func (c *Coscheduling) PreFilterExtensions() fwk.PreFilterExtensions {
	return nil
}

// Filter keeps ordinary Pods from room that is held for a gang ahead of them. It
// looks at resources only: what else members need of a node is rarely scarce, and
// a gang that misses it looks for another place.
//
// It is a Filter, and no PreFilterResult, because kube-scheduler tries a nominated
// node, and the node of an equal Pod before, without a look at that result.
func (c *Coscheduling) Filter(_ context.Context, state fwk.CycleState, _ *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(holdsKey)
	if err != nil {
		return nil // nothing is held
	}
	against, ok := data.(*heldAgainst)
	if !ok {
		return fwk.AsStatus(fmt.Errorf("reading what is held: got a %T", data))
	}
	var reserved usage
	for _, h := range against.holds {
		held := h.reserved(info)
		reserved.add(&held)
	}
	if (reserved.pods > 0 || reserved.cpu > 0 || reserved.memory > 0) && !reserved.leaves(against.request, info) {
		return fwk.NewStatus(fwk.Unschedulable, "node(s) had room that is held for a pod group")
	}
	return nil
}

// usage is what some members take of a node.
type usage struct {
	cpu, memory, storage, pods int64 // millicores, bytes, bytes, number
	scalars                    map[corev1.ResourceName]int64
}

func (u *usage) add(other *usage) {
	if other == nil {
		return
	}
	u.cpu, u.memory, u.storage, u.pods = u.cpu+other.cpu, u.memory+other.memory, u.storage+other.storage, u.pods+other.pods
	for name, q := range other.scalars {
		u.addScalar(name, q)
	}
}

func (u *usage) addScalar(name corev1.ResourceName, q int64) {
	if u.scalars == nil {
		u.scalars = make(map[corev1.ResourceName]int64)
	}
	u.scalars[name] += q
}

// free takes off what a Pod that is there takes, as far as there is something left.
func (u *usage) free(pod fwk.PodInfo) {
	r := pod.CalculateResource().Resource
	u.cpu, u.memory = max(0, u.cpu-r.GetMilliCPU()), max(0, u.memory-r.GetMemory())
	u.storage, u.pods = max(0, u.storage-r.GetEphemeralStorage()), max(0, u.pods-1)
	for name, q := range r.GetScalarResources() {
		if have := u.scalars[name]; have > 0 {
			u.scalars[name] = max(0, have-q)
		}
	}
}

// isFree says whether a node has as much left.
func (u *usage) isFree(info fwk.NodeInfo) bool {
	has, used := info.GetAllocatable(), info.GetRequested()
	fits := func(wanted, has, used int64) bool { return wanted == 0 || wanted <= has-used }
	for name, q := range u.scalars {
		if !fits(q, has.GetScalarResources()[name], used.GetScalarResources()[name]) {
			return false
		}
	}
	return int64(len(info.GetPods()))+u.pods <= int64(has.GetAllowedPodNumber()) &&
		fits(u.cpu, has.GetMilliCPU(), used.GetMilliCPU()) &&
		fits(u.memory, has.GetMemory(), used.GetMemory()) &&
		fits(u.storage, has.GetEphemeralStorage(), used.GetEphemeralStorage())
}

func (u *usage) addMember(member *framework.PodInfo) {
	r := member.CalculateResource().Resource
	u.cpu, u.memory, u.storage, u.pods = u.cpu+r.GetMilliCPU(), u.memory+r.GetMemory(), u.storage+r.GetEphemeralStorage(), u.pods+1
	for name, q := range r.GetScalarResources() {
		u.addScalar(name, q)
	}
}

// leaves says whether a node has room for a request beside what is used, as
// NodeResourcesFit counts it: what is not requested does not matter.
func (u *usage) leaves(request fwk.Resource, info fwk.NodeInfo) bool {
	has, used := info.GetAllocatable(), info.GetRequested()
	if int64(len(info.GetPods()))+u.pods+1 > int64(has.GetAllowedPodNumber()) {
		return false
	}
	fits := func(request, has, used, held int64) bool { return request == 0 || request <= has-used-held }
	if !fits(request.GetMilliCPU(), has.GetMilliCPU(), used.GetMilliCPU(), u.cpu) ||
		!fits(request.GetMemory(), has.GetMemory(), used.GetMemory(), u.memory) ||
		!fits(request.GetEphemeralStorage(), has.GetEphemeralStorage(), used.GetEphemeralStorage(), u.storage) {
		return false
	}
	for name, q := range request.GetScalarResources() {
		if !fits(q, has.GetScalarResources()[name], used.GetScalarResources()[name], u.scalars[name]) {
			return false
		}
	}
	return true
}
