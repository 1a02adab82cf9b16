// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/dynamic-resource-allocation/structured"
	fwk "k8s.io/kube-scheduler/framework"
)

// DynamicResources reports whether a node has devices for one more Pod, but not for how many. For the planner the
// devices of a DeviceClass are a resource of nodes: the number of unused devices. That is an upper bound, as selectors
// and constraints of claims are ignored; verification finds the rest.

// deviceRoom is how many devices of some classes are free on each node.
type deviceRoom struct {
	classes []string
	free    map[string][]int64 // by node, in the order of classes
}

// deviceResource returns the name under which the planner counts a DeviceClass's devices.
func deviceResource(class string) string { return "devices of class " + class }

// roomOfDevices counts the free devices of the DeviceClasses that members request, and sets in each class how many one
// member takes. It leaves out DeviceClasses whose devices can't be counted by node.
func roomOfDevices(ctx context.Context, a *attempt, nodes []fwk.NodeInfo) deviceRoom {
	classes := a.found.classes
	if len(classes) == 0 {
		return deviceRoom{}
	}
	manager := classes[0].handle.SharedDRAManager()
	if manager == nil {
		return deviceRoom{}
	}
	shared := sharedClaims(a.gang.Waiting)
	wanted := make(map[string]bool)
	for _, class := range classes {
		class.devices = make(map[string]int64)
		for _, pod := range class.members {
			if asked := devicesOf(manager, pod, shared); len(asked) < len(class.devices) || pod == class.members[0] {
				class.devices = asked
			}
		}
		for name, quantity := range class.info.CalculateResource().Resource.GetScalarResources() {
			if of := manager.DeviceClassResolver().GetDeviceClass(name); of != nil {
				if isOnNodes(name, nodes) {
					quantity = 0 // a member may take the resource of a node instead
				}
				class.devices[of.Name] += quantity
			}
		}
		for name := range class.devices {
			wanted[name] = true
		}
	}
	if len(wanted) == 0 {
		return deviceRoom{}
	}
	all, err := manager.ResourceSlices().ListWithDeviceTaintRules()
	if err != nil {
		return deviceRoom{}
	}
	used, err := manager.ResourceClaims().ListAllAllocatedDevices()
	if err != nil {
		return deviceRoom{}
	}
	var room deviceRoom
	counts := make(map[string]map[string]int64) // by class and node
	for name := range wanted {
		of, err := manager.DeviceClasses().Get(name)
		if err != nil {
			continue
		}
		free, ok := a.cluster.Passes.devices.free(ctx, of, all, func(id structured.DeviceID) bool { return used.Has(id) })
		if ok {
			room.classes, counts[name] = append(room.classes, name), free
		}
	}
	a.cluster.Passes.devices.prune(all)
	slices.Sort(room.classes)
	room.free = make(map[string][]int64)
	for c, name := range room.classes {
		for node, n := range counts[name] {
			if room.free[node] == nil {
				room.free[node] = make([]int64, len(room.classes))
			}
			room.free[node][c] = n
		}
	}
	return room
}

// on returns the free devices on a node, in the order of classes.
func (r *deviceRoom) on(node string) []int64 {
	if free := r.free[node]; free != nil {
		return free
	}
	return make([]int64, len(r.classes))
}

// request returns how many devices of each DeviceClass a member of a class takes, in the order of r.classes.
func (r *deviceRoom) request(class *class) []int64 {
	request := make([]int64, len(r.classes))
	for c, name := range r.classes {
		request[c] = class.devices[name]
	}
	return request
}

// countsDevices reports whether a member takes devices, or may take some.
func countsDevices(classes []*class) bool {
	return slices.ContainsFunc(classes, func(class *class) bool { return len(class.devices) > 0 })
}

// isOnNodes reports whether some node has an extended resource without a DeviceClass.
func isOnNodes(name corev1.ResourceName, nodes []fwk.NodeInfo) bool {
	return slices.ContainsFunc(nodes, func(info fwk.NodeInfo) bool { return info.GetAllocatable().GetScalarResources()[name] > 0 })
}

// sharedClaims returns the names of the claims that more than one Pod uses.
func sharedClaims(pods []*corev1.Pod) map[string]bool {
	named, shared := make(map[string]bool), make(map[string]bool)
	for _, pod := range pods {
		for i := range pod.Spec.ResourceClaims {
			if name := pod.Spec.ResourceClaims[i].ResourceClaimName; name != nil {
				if named[*name] {
					shared[*name] = true
				}
				named[*name] = true
			}
		}
	}
	return shared
}

// devicesOf returns how many devices a Pod still needs, by DeviceClass. Claims that are allocated, or shared with
// another member, do not count.
func devicesOf(manager fwk.SharedDRAManager, pod *corev1.Pod, shared map[string]bool) map[string]int64 {
	asked := make(map[string]int64)
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil || shared[*name] {
			continue
		}
		claim, err := manager.ResourceClaims().Get(pod.Namespace, *name)
		if err != nil || claim.Status.Allocation != nil {
			continue
		}
		for r := range claim.Spec.Devices.Requests {
			exactly := claim.Spec.Devices.Requests[r].Exactly
			if exactly == nil || exactly.AllocationMode == resourcev1.DeviceAllocationModeAll || exactly.AdminAccess != nil && *exactly.AdminAccess {
				continue
			}
			asked[exactly.DeviceClassName] += max(1, exactly.Count)
		}
	}
	return asked
}

// deviceMatches caches which devices of a ResourceSlice belong to a DeviceClass. The zero value is empty.
type deviceMatches struct {
	found   map[deviceKey][]structured.DeviceID
	express *cel.Cache
}

// deviceKey identifies a DeviceClass and a ResourceSlice in the versions that were compared.
type deviceKey struct {
	class *resourcev1.DeviceClass
	slice *resourcev1.ResourceSlice
}

// free returns how many unused devices of a class each node has. It returns false if a device of the class belongs to
// more than one node, or several claims may use the same device.
func (m *deviceMatches) free(ctx context.Context, class *resourcev1.DeviceClass, all []*resourcev1.ResourceSlice, isUsed func(structured.DeviceID) bool) (map[string]int64, bool) {
	free := make(map[string]int64)
	for _, slice := range all {
		key := deviceKey{class, slice}
		devices, known := m.found[key]
		if !known {
			devices = m.of(ctx, class, slice)
			if m.found == nil {
				m.found = make(map[deviceKey][]structured.DeviceID)
			}
			m.found[key] = devices
		}
		if len(devices) == 0 {
			continue
		}
		if slice.Spec.NodeName == nil || slices.ContainsFunc(slice.Spec.Devices, func(d resourcev1.Device) bool {
			return d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		}) {
			return nil, false
		}
		for _, id := range devices {
			if !isUsed(id) {
				free[*slice.Spec.NodeName]++
			}
		}
	}
	return free, true
}

// of returns the devices of a slice that belong to a class. If a selector can't be evaluated for a device, the selector
// counts as matching.
func (m *deviceMatches) of(ctx context.Context, class *resourcev1.DeviceClass, slice *resourcev1.ResourceSlice) []structured.DeviceID {
	if m.express == nil {
		m.express = cel.NewCache(16, cel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	}
	devices := []structured.DeviceID{}
	for d := range slice.Spec.Devices {
		device := &slice.Spec.Devices[d]
		excluded := slices.ContainsFunc(class.Spec.Selectors, func(selector resourcev1.DeviceSelector) bool {
			if selector.CEL == nil {
				return false
			}
			expression := m.express.GetOrCompile(selector.CEL.Expression)
			if expression.Error != nil {
				return false
			}
			matches, _, err := expression.DeviceMatches(ctx, cel.Device{Driver: slice.Spec.Driver, AllowMultipleAllocations: device.AllowMultipleAllocations,
				Attributes: device.Attributes, Capacity: device.Capacity})
			return err == nil && !matches
		})
		if !excluded {
			devices = append(devices, structured.MakeDeviceID(slice.Spec.Driver, slice.Spec.Pool.Name, device.Name))
		}
	}
	return devices
}

// prune drops slices that no longer exist.
func (m *deviceMatches) prune(all []*resourcev1.ResourceSlice) {
	if len(m.found) < 4*len(all)+64 {
		return
	}
	known := make(map[*resourcev1.ResourceSlice]bool, len(all))
	for _, slice := range all {
		known[slice] = true
	}
	for key := range m.found {
		if !known[key.slice] {
			delete(m.found, key)
		}
	}
}
