// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

// leftovers returns for how many more members a node would have room beside all of a gang, by node: the gang fits best where that is
// least. Nodes that have no room for all of the gang come after those that have, and all alike. Of a gang of several classes all nodes
// are alike.
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
