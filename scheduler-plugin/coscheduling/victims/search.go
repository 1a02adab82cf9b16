// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"slices"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Pod is a Pod of a unit: where it is, and what it takes there of each resource
// of the World.
type Pod struct {
	Node    int
	Request []int64
}

// Search chooses units so that the gang fits, by packing alone. empty is the
// cluster without any of the Pods, which the units name by their index.
func Search(empty *planner.World, gang *planner.Gang, pods []Pod, units []Unit) ([]int, bool) {
	world := &planner.World{Resources: empty.Resources, Nodes: slices.Clone(empty.Nodes)}
	for n := range world.Nodes {
		world.Nodes[n].Free = slices.Clone(empty.Nodes[n].Free)
	}
	gone := make([]bool, len(pods))
	fits := func(taken []bool) bool {
		clear(gone)
		for u, taken := range taken {
			if taken {
				for _, p := range units[u].Pods {
					gone[p] = true
				}
			}
		}
		for n := range world.Nodes {
			copy(world.Nodes[n].Free, empty.Nodes[n].Free)
		}
		for p := range pods {
			if !gone[p] {
				for r, request := range pods[p].Request {
					world.Nodes[pods[p].Node].Free[r] -= request
				}
			}
		}
		return planner.Fits(world, gang)
	}
	return Choose(units, fits)
}
