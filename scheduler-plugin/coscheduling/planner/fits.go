// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

// Candidates are the sets of nodes, by index, of which the Required levels allow
// one to hold all of the gang: all nodes if there is no such level.
func Candidates(world *World, gang *Gang) [][]int {
	var sets [][]int
	for _, c := range candidates(world, gang) {
		sets = append(sets, c.nodes)
	}
	return sets
}

// FitsOn reports whether Plans would yield a plan on some of the nodes. For members that are
// all alike it is exact. For others both are heuristics, which look at nodes in a different
// order, so that one may find room that the other misses. A Room answers the same many times.
func FitsOn(world *World, gang *Gang, nodes []int) bool {
	if !attainable(gang) {
		return false
	}
	if len(gang.Classes) == 1 {
		return room(world, gang, nodes) >= needed(gang)
	}
	_, ok := pack(world, gang, nodes)
	return ok
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
