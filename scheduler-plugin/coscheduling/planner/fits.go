// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

// Candidates returns the sets of nodes, by index, on which the whole gang may be placed. There is one set for each
// combination of domains of the Required levels, or a single set of all nodes if there are no such levels.
func Candidates(world *World, gang *Gang) [][]int {
	var sets [][]int
	for _, c := range candidates(world, gang) {
		sets = append(sets, c.nodes)
	}
	return sets
}

// FitsOn reports whether the gang's minima fit on the given nodes. For equal members the answer is exact. For others,
// FitsOn is a heuristic, as Plans is, but looks at nodes in another order, so each may find room that the other misses.
// To ask many times while free resources change, use a Room.
func FitsOn(world *World, gang *Gang, nodes []int) bool {
	if !attainable(gang) {
		return false
	}
	if len(gang.Classes) == 1 {
		enough := needed(gang)
		return gang.Classes[0].heldBy(world, nodes, enough) >= enough
	}
	_, ok := pack(world, gang, nodes)
	return ok
}

// heldBy returns how many members of the class the nodes hold without other members, but at most `enough`.
func (c *Class) heldBy(world *World, nodes []int, enough int) int {
	held := 0
	for _, node := range nodes {
		if held >= enough {
			break
		}
		if c.eligible(node) {
			held += min(c.slots(world.Nodes[node].Free), enough)
		}
	}
	return min(held, enough)
}

// Holds reports whether a node has room for a member of any class.
func Holds(world *World, gang *Gang, node int) bool {
	for i := range gang.Classes {
		if c := &gang.Classes[i]; c.eligible(node) && c.slots(world.Nodes[node].Free) > 0 {
			return true
		}
	}
	return false
}
