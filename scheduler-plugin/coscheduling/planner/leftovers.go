// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

// leftovers returns, by node, for how many more members the node would have room beside all of a gang: the gang fits
// best where this is least. Nodes without room for all of the gang have one equal value above all others. For a gang of
// several classes all nodes have the same value.
func leftovers(world *World, gang *Gang, nodes []int) map[int]int {
	if len(gang.Classes) != 1 {
		return nil
	}
	class, rest := &gang.Classes[0], make(map[int]int, len(nodes))
	for _, n := range nodes {
		if class.eligible(n) {
			rest[n] = class.slots(world.Nodes[n].Free) - class.Count
		}
	}
	most := 0
	for _, left := range rest {
		most = max(most, left)
	}
	for n, left := range rest {
		if left < 0 {
			rest[n] = most + 1
		}
	}
	return rest
}
