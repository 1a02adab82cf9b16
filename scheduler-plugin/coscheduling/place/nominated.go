// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// A Pod that has preempted others is nominated for their node until the others have ended; there are other reasons to
// nominate a Pod. A gang that does not outrank a nominated Pod leaves room for that Pod. The Filter plugins do so
// themselves, but the planner needs the amounts: without them, the planner would put members where plugins reject them,
// and have Pods evicted although there is room.

// nominated are nominated Pods, by node, for which a gang has to leave room.
type nominated map[string][]fwk.PodInfo

// notOutranked returns the nominated Pods that a gang does not outrank, without the gang's own members.
func notOutranked(g *Gang, all map[string][]fwk.PodInfo) nominated {
	if len(all) == 0 {
		return nil
	}
	own := make(map[types.UID]bool, len(g.Waiting))
	for _, pod := range g.Waiting {
		own[pod.UID] = true
	}
	var ahead nominated
	for node, pods := range all {
		for _, info := range pods {
			pod := info.GetPod()
			if own[pod.UID] || corev1helpers.PodPriority(pod) < g.Rank.Priority {
				continue
			}
			if ahead == nil {
				ahead = make(nominated)
			}
			ahead[node] = append(ahead[node], info)
		}
	}
	return ahead
}

// on returns what nominated Pods take, by the index of the node.
func (n nominated) on(nodes []fwk.NodeInfo, resources resources) map[int][]int64 {
	if len(n) == 0 {
		return nil
	}
	taken := make(map[int][]int64)
	for i, node := range nodes {
		for _, info := range n[node.Node().Name] {
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

// message returns for how many nominated Pods room is left, or "".
func (n nominated) message() string {
	pods := 0
	for _, on := range n {
		pods += len(on)
	}
	if pods == 0 {
		return ""
	}
	return fmt.Sprintf("; room is left to %d Pods that are nominated for nodes", pods)
}
