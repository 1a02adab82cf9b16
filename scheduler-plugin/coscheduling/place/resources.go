// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// resources are the resources that a gang's classes request, in a fixed order. Units: CPU in millicores, memory and
// ephemeral storage in bytes, Pods, extended resources in their own unit.
type resources struct {
	names   []string
	scalars []corev1.ResourceName
	// devices are further resources, after those that nodes have by name; see devices.go.
	devices deviceRoom
}

// with returns the resources with devices added.
func (r resources) with(devices deviceRoom) resources {
	for _, class := range devices.classes {
		r.names = append(r.names, deviceResource(class))
	}
	r.devices = devices
	return r
}

// maxExtended is how many extended resources the members of a gang may request together. The planner has an amount of
// each for each node.
const maxExtended = 64

var errManyResources = fmt.Errorf("the members request more than %d different extended resources", maxExtended)

func newResources(classes []*class) resources {
	extended := make(map[corev1.ResourceName]bool)
	for _, c := range classes {
		for name := range c.info.CalculateResource().Resource.GetScalarResources() {
			extended[name] = true
		}
	}
	return resourcesOf(slices.Sorted(maps.Keys(extended)))
}

// resourcesOf returns some extended resources and those that every node has.
func resourcesOf(extended []corev1.ResourceName) resources {
	r := resources{
		names: []string{string(corev1.ResourceCPU), string(corev1.ResourceMemory),
			string(corev1.ResourceEphemeralStorage), string(corev1.ResourcePods)},
		scalars: extended,
	}
	for _, name := range r.scalars {
		r.names = append(r.names, string(name))
	}
	return r
}

func (r resources) quantities(resource fwk.Resource, pods int64) []int64 {
	return r.add(make([]int64, 0, len(r.names)), resource, pods)
}

// add appends quantities to a slice.
func (r resources) add(to []int64, resource fwk.Resource, pods int64) []int64 {
	to = append(to, resource.GetMilliCPU(), resource.GetMemory(), resource.GetEphemeralStorage(), pods)
	for _, name := range r.scalars {
		to = append(to, resource.GetScalarResources()[name])
	}
	return to
}

// provided returns the extended resources that some node lists. Resources of a DeviceClass are left out, because a node
// may have such a resource without listing it.
func (r resources) provided(nodes []fwk.NodeInfo, classes []*class) map[corev1.ResourceName]bool {
	provided := make(map[corev1.ResourceName]bool, len(r.scalars))
	for _, name := range r.scalars {
		if len(classes) > 0 {
			if manager := classes[0].handle.SharedDRAManager(); manager != nil && manager.DeviceClassResolver().GetDeviceClass(name) != nil {
				continue
			}
		}
		provided[name] = isOnNodes(name, nodes)
	}
	return provided
}

// request returns what a member takes.
func (r resources) request(class *class) []int64 {
	return append(r.quantities(class.info.CalculateResource().Resource, 1), r.devices.request(class)...)
}

// readFree reads what a node has left.
func (r resources) readFree(into []int64, info fwk.NodeInfo) {
	has, used := info.GetAllocatable(), info.GetRequested()
	into = append(into[:0], has.GetMilliCPU()-used.GetMilliCPU(), has.GetMemory()-used.GetMemory(),
		has.GetEphemeralStorage()-used.GetEphemeralStorage(), int64(has.GetAllowedPodNumber()-len(info.GetPods())))
	for _, name := range r.scalars {
		into = append(into, has.GetScalarResources()[name]-used.GetScalarResources()[name])
	}
	_ = append(into, r.devices.on(info.Node().Name)...)
}
