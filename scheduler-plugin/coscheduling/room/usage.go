// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Usage is what Pods take of a node. The zero Usage is nothing. It counts resources only:
// what else members need of a node is rarely scarce, and a gang that misses it looks for
// another place.
type Usage struct {
	cpu, memory, storage, pods int64 // millicores, bytes, bytes, number
	// scalars are the other resources. Usages that are copies of each other share the map.
	scalars map[corev1.ResourceName]int64
}

// UsageOf is what a Pod takes.
func UsageOf(pod fwk.PodInfo) Usage {
	r := pod.CalculateResource().Resource
	u := Usage{cpu: r.GetMilliCPU(), memory: r.GetMemory(), storage: r.GetEphemeralStorage(), pods: 1}
	u.addScalars(r.GetScalarResources())
	return u
}

// add puts another Usage on top. Nobody else may have a copy of this one.
func (u *Usage) add(other Usage) {
	u.cpu, u.memory, u.storage, u.pods = u.cpu+other.cpu, u.memory+other.memory, u.storage+other.storage, u.pods+other.pods
	u.addScalars(other.scalars)
}

func (u *Usage) addScalars(scalars map[corev1.ResourceName]int64) {
	if u.scalars == nil && len(scalars) > 0 {
		u.scalars = make(map[corev1.ResourceName]int64, len(scalars))
	}
	for name, q := range scalars {
		u.scalars[name] += q
	}
}

// takeOff takes another Usage off, as far as there is something left. Nobody else may have
// a copy of this one.
func (u *Usage) takeOff(other Usage) {
	u.cpu, u.memory = max(0, u.cpu-other.cpu), max(0, u.memory-other.memory)
	u.storage, u.pods = max(0, u.storage-other.storage), max(0, u.pods-other.pods)
	for name, q := range other.scalars {
		if have := u.scalars[name]; have > 0 {
			u.scalars[name] = max(0, have-q)
		}
	}
}

// IsZero says whether nothing is taken.
func (u Usage) IsZero() bool {
	for _, q := range u.scalars {
		if q > 0 {
			return false
		}
	}
	return u.cpu == 0 && u.memory == 0 && u.storage == 0 && u.pods == 0
}

// IsFreeOn says whether a node has as much left. An extended resource of which the node has none is not counted here: a
// class of devices provides it, or an extender, and plugins tell how much there is.
func (u Usage) IsFreeOn(node fwk.NodeInfo) bool {
	has, used := node.GetAllocatable(), node.GetRequested()
	fits := func(wanted, has, used int64) bool { return wanted == 0 || wanted <= has-used }
	for name, q := range u.scalars {
		if has := has.GetScalarResources()[name]; has > 0 && !fits(q, has, used.GetScalarResources()[name]) {
			return false
		}
	}
	return int64(len(node.GetPods()))+u.pods <= int64(has.GetAllowedPodNumber()) &&
		fits(u.cpu, has.GetMilliCPU(), used.GetMilliCPU()) &&
		fits(u.memory, has.GetMemory(), used.GetMemory()) &&
		fits(u.storage, has.GetEphemeralStorage(), used.GetEphemeralStorage())
}

// LeavesRoom says whether a node has room for the request of one more Pod beside what is
// used and this, as NodeResourcesFit counts it: what is not requested does not matter, nor an extended resource of which
// the node has none.
func (u Usage) LeavesRoom(request fwk.Resource, node fwk.NodeInfo) bool {
	has, used := node.GetAllocatable(), node.GetRequested()
	if int64(len(node.GetPods()))+u.pods+1 > int64(has.GetAllowedPodNumber()) {
		return false
	}
	fits := func(request, has, used, kept int64) bool { return request == 0 || request <= has-used-kept }
	if !fits(request.GetMilliCPU(), has.GetMilliCPU(), used.GetMilliCPU(), u.cpu) ||
		!fits(request.GetMemory(), has.GetMemory(), used.GetMemory(), u.memory) ||
		!fits(request.GetEphemeralStorage(), has.GetEphemeralStorage(), used.GetEphemeralStorage(), u.storage) {
		return false
	}
	for name, q := range request.GetScalarResources() {
		if has := has.GetScalarResources()[name]; has > 0 && !fits(q, has, used.GetScalarResources()[name], u.scalars[name]) {
			return false
		}
	}
	return true
}
