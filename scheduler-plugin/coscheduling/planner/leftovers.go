// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import "math"

// leftovers returns, by node, the room that would be left beside the whole gang, in members and fractions of a member.
// The gang fits best on the node with the smallest value. Nodes that can't hold the whole gang share one value larger
// than all others. For a gang of several classes the result is nil, so that all nodes are equal.
func leftovers(world *World, gang *Gang, nodes []int) map[int]float64 {
	if len(gang.Classes) != 1 {
		return nil
	}
	class, rest := &gang.Classes[0], make(map[int]float64, len(nodes))
	for _, n := range nodes {
		if class.eligible(n) {
			rest[n] = class.room(world.Nodes[n].Free) - float64(class.Count)
		}
	}
	most := 0.0
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

// room returns how many members fit into the free quantities, as a fraction: 1.5 for one and a half.
func (c *Class) room(free []int64) float64 {
	n := math.Inf(1)
	if c.PerNode > 0 {
		n = float64(c.PerNode)
	}
	for r, request := range c.Request {
		if request > 0 {
			n = min(n, float64(max(free[r], 0))/float64(request))
		}
	}
	return n
}
