// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

// Fits says whether Plans would yield a plan. It looks for no good one, so it is
// cheap enough to be asked a thousand times in the search for victims.
func Fits(world *World, gang *Gang) bool {
	if !attainable(gang) {
		return false
	}
	for _, c := range candidates(world, gang) {
		if len(gang.Classes) == 1 {
			if room(world, gang, c.nodes) >= needed(gang) {
				return true
			}
			continue
		}
		if _, ok := pack(world, gang, c.nodes); ok {
			return true
		}
	}
	return false
}

// room is how many members of a gang of one class the nodes hold, as far as it
// matters whether the minima do. For one class this is exact.
func room(world *World, gang *Gang, nodes []int) int {
	class, enough := &gang.Classes[0], needed(gang)
	n := 0
	for _, node := range nodes {
		if n >= enough {
			break
		}
		if class.eligible(node) {
			n += min(class.slots(world.Nodes[node].Free), enough)
		}
	}
	return n
}
