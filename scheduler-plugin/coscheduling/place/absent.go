// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// absent are Pods for which room has to be left on nodes although the snapshot does not have the Pods there, by node.
type absent map[string][]fwk.PodInfo

// leaveRoom reports whether a node has room for another Pod beside the absent Pods.
func (a absent) leaveRoom(pod fwk.PodInfo, node fwk.NodeInfo) bool {
	if len(a[node.Node().Name]) == 0 {
		return true
	}
	reserved := make(provision.Amounts)
	for _, info := range a[node.Node().Name] {
		if !isOn(info, node) {
			reserved.Add(room.TakesOf(info))
		}
	}
	return room.Fits(room.TakesOf(pod), reserved, node)
}

// on returns what the Pods take, by the index of the node.
func (a absent) on(nodes []fwk.NodeInfo, resources resources) map[int][]int64 {
	if len(a) == 0 {
		return nil
	}
	taken := make(map[int][]int64)
	for i, node := range nodes {
		for _, info := range a[node.Node().Name] {
			if isOn(info, node) {
				continue // the Pod is placed, and not all caches show it yet
			}
			if taken[i] == nil {
				taken[i] = make([]int64, len(resources.names))
			}
			for r, q := range resources.quantities(info.CalculateResource().Resource, 1) {
				taken[i][r] += q
			}
		}
	}
	return taken
}

// isOn reports whether a Pod is on a node.
func isOn(info fwk.PodInfo, node fwk.NodeInfo) bool {
	return slices.ContainsFunc(node.GetPods(), func(other fwk.PodInfo) bool { return other.GetPod().UID == info.GetPod().UID })
}
