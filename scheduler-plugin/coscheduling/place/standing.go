// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// Standing is a gang that has members placed, and what can be taken of it.
type Standing gangs.Standing

// whole says whether the gang has its minimum.
func (s *Standing) whole() bool {
	return s.Group.HeldBy(s.Placed)
}

// surplus are those of a gang's Pods, by index, that it can spare one by one:
// the youngest first, as far as its minima allow.
func (s *Standing) surplus(pods []fwk.PodInfo, youngest []int) []int {
	var spare []int
	left := s.Placed.Plus(podgroup.Tally{})
	for _, p := range youngest {
		role := s.Group.Key.RoleOf(pods[p].GetPod())
		left.Add(role, -1)
		if s.Group.HeldBy(left) {
			spare = append(spare, p)
		} else {
			left.Add(role, 1)
		}
	}
	return spare
}

// spares says whether the gang's minima hold without some of its Pods.
func (s *Standing) spares(pods []fwk.PodInfo, some []int) bool {
	left := s.Placed.Plus(podgroup.Tally{})
	for _, p := range some {
		left.Add(s.Group.Key.RoleOf(pods[p].GetPod()), -1)
	}
	return s.Group.HeldBy(left)
}

// byYouth orders Pods, by index, the one that has run the shortest first.
func byYouth(pods []fwk.PodInfo, indexes []int, now time.Time) {
	slices.SortFunc(indexes, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(ran(pods[a].GetPod(), now), ran(pods[b].GetPod(), now)),
			-cmp.Compare(len(pods[a].GetPod().Name), len(pods[b].GetPod().Name)),
			-cmp.Compare(pods[a].GetPod().Name, pods[b].GetPod().Name),
		)
	})
}

// ran is how long a Pod has run.
func ran(pod *corev1.Pod, now time.Time) time.Duration {
	if pod.Status.StartTime == nil {
		return 0
	}
	return max(0, now.Sub(pod.Status.StartTime.Time))
}
