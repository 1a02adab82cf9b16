// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// Members with a reservation are nominated for their nodes, and each change of a nomination is a write. While its
// victims end, the gang is planned again and again, and each plan puts other members on the same nodes. So members that
// are alike swap places, until as few as possible change their node.

// steady returns the places of members, permuted so that as many members as possible keep their node: the node in the
// gang's reservation for preemption or, without such a reservation, the node for which the member is nominated.
func steady(gang *Gang, places []*framework.PodInfo, before *room.Reservation) ([]*framework.PodInfo, error) {
	classes := make(map[types.UID]string, len(gang.Waiting))
	for i, pod := range gang.Waiting {
		if !ownsClaims(pod) { // a Pod with its own claims may not fit elsewhere
			classes[pod.UID] = gang.ClassKeys[i]
		}
	}
	// place is a node with a place for a member of a class.
	type place struct{ class, node string }
	free := make(map[place]int)
	for _, info := range places {
		if class, ok := classes[info.Pod.UID]; ok {
			free[place{class, info.Pod.Spec.NodeName}]++
		}
	}
	stays := make(map[types.UID]bool)
	for _, info := range places {
		at := place{classes[info.Pod.UID], nodeBefore(info.Pod, before)}
		if free[at] > 0 {
			free[at]--
			stays[info.Pod.UID] = true
		}
	}
	left := make(map[string][]string) // nodes by class, in the order of places
	for _, info := range places {
		if at := (place{classes[info.Pod.UID], info.Pod.Spec.NodeName}); free[at] > 0 {
			free[at]--
			left[at.class] = append(left[at.class], at.node)
		}
	}
	moved := make([]*framework.PodInfo, len(places))
	for i, info := range places {
		node := info.Pod.Spec.NodeName
		if class, ok := classes[info.Pod.UID]; stays[info.Pod.UID] {
			node = nodeBefore(info.Pod, before)
		} else if ok {
			node, left[class] = left[class][0], left[class][1:]
		}
		var err error
		if moved[i], err = movedTo(info, node); err != nil {
			return nil, err
		}
	}
	return moved, nil
}

// nodeBefore returns the node where a member was to go before, "" for none.
func nodeBefore(pod *corev1.Pod, before *room.Reservation) string {
	if before != nil {
		if node := before.NodeFor(pod.UID); node != "" {
			return node
		}
	}
	return pod.Status.NominatedNodeName
}

// movedTo returns a member on another node, or the member itself if its node is the same.
func movedTo(info *framework.PodInfo, node string) (*framework.PodInfo, error) {
	if info.Pod.Spec.NodeName == node {
		return info, nil
	}
	pod := *info.Pod
	pod.Spec.NodeName = node
	moved, err := framework.NewPodInfo(&pod)
	if err != nil {
		return nil, fmt.Errorf("reading affinity of %s: %w", klog.KObj(&pod), err)
	}
	return moved, nil
}
