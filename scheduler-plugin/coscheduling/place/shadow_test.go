// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// TestNoMoreWorkHasToEndThanUntilTheGangFits compares with one Pod ending after the other, on full nodes of four cores.
func TestNoMoreWorkHasToEndThanUntilTheGangFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 100 {
		world := &planner.World{Resources: resourcesOf(nil).names}
		pods := &pool{}
		nodes := 1 + random.IntN(6)
		for n := range nodes {
			world.Nodes = append(world.Nodes, planner.Node{Name: fmt.Sprint(n), Free: []int64{0, 0, 0, 110}, Domains: []string{fmt.Sprint(n % 2)}})
			for cores := 4; cores > 0; {
				takes := 1 + random.IntN(cores)
				cores -= takes
				info, err := framework.NewPodInfo(schedulertesting.MakePod().Req(map[corev1.ResourceName]string{corev1.ResourceCPU: fmt.Sprint(takes)}).Obj())
				if err != nil {
					t.Fatal(err)
				}
				pods.soon = append(pods.soon, soon{pod: len(pods.seen)})
				pods.seen = append(pods.seen, seen{info: info, node: n, request: []int64{int64(1000 * takes), 0, 0, 1}})
			}
		}
		random.Shuffle(len(pods.soon), func(i, j int) { pods.soon[i], pods.soon[j] = pods.soon[j], pods.soon[i] })
		gang := &planner.Gang{Min: 1 + random.IntN(4), Levels: []planner.Level{{Key: "rack", Required: random.IntN(2) == 0}}}
		gang.Classes = []planner.Class{{Count: gang.Min, Request: []int64{int64(1000 * (1 + random.IntN(4))), 0, 0, 1}}}
		at := func() *shadow {
			own := world.Clone()
			return &shadow{pool: pods, world: own, gangs: []*planner.Gang{gang}, sets: planner.Candidates(own, gang)}
		}
		dumb, want := at(), 0
		for ; want <= len(pods.soon); want++ {
			if dumb.advance(want); dumb.fits() {
				break
			}
		}
		s := at()
		got, fits := s.shortest()
		if fits != (want <= len(pods.soon)) || fits && got != want {
			t.Fatalf("round %d: %d of %d Pods have to end, fits %t, want %d", round, got, len(pods.soon), fits, want)
		}
		if !fits {
			continue
		}
		s.advance(got)
		for n := range nodes {
			if holds := s.world.Nodes[n].Free[0] >= gang.Classes[0].Request[0]; s.holds(n) != holds {
				t.Errorf("round %d: node %d with %d millicores holds a member: %t", round, n, s.world.Nodes[n].Free[0], s.holds(n))
			}
		}
	}
}
