// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

// Candidates returns the sets of nodes, by index, that may hold all of the gang by its Required levels: a single set of
// all nodes if there is no such level.
func Candidates(world *World, gang *Gang) [][]int {
	var sets [][]int
	for _, c := range candidates(world, gang) {
		sets = append(sets, c.nodes)
	}
	return sets
}

// FitsOn reports whether Plans would yield a plan on some of the nodes. For equal members the answer is exact. For
// others, FitsOn and Plans are heuristics that look at nodes in different orders, so that one may find room that the
// other misses. A Room answers the same question many times.
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

// room returns how many members of a gang of one class the nodes hold, counted up to what the minima need. For one
// class this is exact.
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
