// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// absent are Pods for which room has to be left on nodes although the snapshot does not have the Pods there, by node.
type absent map[string][]fwk.PodInfo

// addTo adds what the Pods take to `taken`, by the index of the node.
func (a absent) addTo(taken map[int][]int64, nodes []fwk.NodeInfo, resources resources) {
	if len(a) == 0 {
		return
	}
	for i, node := range nodes {
		for _, info := range a[node.Node().Name] {
			if isOn(info, node) {
				continue // the Pod is placed, and not all caches show it yet
			}
			takes := resources.quantities(info.CalculateResource().Resource, 1)
			if taken[i] == nil {
				taken[i] = takes[:len(resources.names)] // with no devices
				continue
			}
			for r, q := range takes {
				taken[i][r] += q
			}
		}
	}
}

// isOn reports whether a Pod is on a node.
func isOn(info fwk.PodInfo, node fwk.NodeInfo) bool {
	return slices.ContainsFunc(node.GetPods(), func(other fwk.PodInfo) bool { return other.GetPod().UID == info.GetPod().UID })
}
