// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
)

// A Pod that has preempted others is nominated for their node until the others have ended; there are other reasons to
// nominate a Pod. A gang that does not outrank a nominated Pod leaves room for that Pod. The Filter plugins do so
// themselves, but the planner needs the amounts: without them, the planner would put members where plugins reject them,
// and have Pods evicted although there is room.

// notOutranked returns the nominated Pods that a gang does not outrank, without the gang's own members.
func notOutranked(g *Gang, all map[string][]fwk.PodInfo) absent {
	if len(all) == 0 {
		return nil
	}
	own := make(map[types.UID]bool, len(g.Waiting))
	for _, pod := range g.Waiting {
		own[pod.UID] = true
	}
	var ahead absent
	for node, pods := range all {
		for _, info := range pods {
			pod := info.GetPod()
			if own[pod.UID] || corev1helpers.PodPriority(pod) < g.Rank.Priority {
				continue
			}
			if ahead == nil {
				ahead = make(absent)
			}
			ahead[node] = append(ahead[node], info)
		}
	}
	return ahead
}

// leftTo returns for how many nominated Pods room is left, as the rest of a sentence, or "".
func leftTo(nominated absent) string {
	pods := 0
	for _, on := range nominated {
		pods += len(on)
	}
	if pods == 0 {
		return ""
	}
	return fmt.Sprintf("; room is left to %d Pods that are nominated for nodes", pods)
}
