// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// TestTheSearchForOneNodeEndsWithTheTurn has members that share a claim, and nodes of which
// each holds all of them: no more nodes are tried once the turn has to end.
func TestTheSearchForOneNodeEndsWithTheTurn(t *testing.T) {
	const nodes, triedInTime = 100, 3
	sharing := func(name string) *corev1.Pod {
		p := pod(name)
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "device", ResourceClaimName: ptr.To("shared")}}
		return p
	}
	world := &planner.World{Resources: []string{"cpu"}}
	for range nodes {
		world.Nodes = append(world.Nodes, planner.Node{Name: "node", Free: []int64{2}})
	}
	start := time.Now()
	asked := 0
	a := &attempt{
		gang:  &Gang{View: gangs.View{Waiting: []*corev1.Pod{sharing("a"), sharing("b")}}},
		until: deadline{func() time.Time { asked++; return start.Add(time.Duration(asked) * time.Second) }, start.Add(triedInTime * time.Second)},
		found: &survey{world: world, gang: &planner.Gang{Min: 2, Classes: []planner.Class{{Count: 2, Request: []int64{1}}}}},
	}
	var tried []int
	a.plansOnOneNode(func(plan planner.Plan) bool {
		tried = append(tried, plan.Assignments[0].Node)
		return true
	})
	if diff := cmp.Diff([]int{0, 1, 2}, tried); diff != "" {
		t.Errorf("the nodes that were tried are not the first %d (-want +got):\n%s", triedInTime, diff)
	}
}
