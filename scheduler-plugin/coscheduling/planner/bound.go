// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
)

// Exceeds reports whether some nodes certainly can't hold the minima of a gang. It computes a bound for each class and
// each resource, which costs much less than a plan. If it returns false, the gang may or may not fit.
func Exceeds(world *World, gang *Gang, nodes []int) bool {
	most := make([]int, len(gang.Classes)) // members of each class that have room without the others
	roles := make(map[string]int)
	total := 0
	for i := range gang.Classes {
		c := &gang.Classes[i]
		most[i] = c.heldBy(world, nodes, c.Count)
		roles[c.Role] += most[i]
		total += most[i]
	}
	for role, least := range gang.MinRole {
		if roles[role] < least {
			return true
		}
	}
	least := max(1, needed(gang))
	return total < least || exceedsSum(world, gang, nodes, most, least)
}

// exceedsSum reports whether the requests of the given number of members, added up, certainly exceed what all nodes
// together have of some resource.
func exceedsSum(world *World, gang *Gang, nodes []int, most []int, members int) bool {
	order := bySize(gang)
	for r := range world.Resources {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(gang.Classes[a].Request[r], gang.Classes[b].Request[r]) })
		least, left := int64(0), members
		for _, class := range order {
			n := min(left, most[class])
			least += int64(n) * gang.Classes[class].Request[r]
			left -= n
		}
		if least == 0 {
			continue
		}
		for _, n := range nodes {
			if least > 0 {
				least -= max(0, world.Nodes[n].Free[r])
			}
		}
		if least > 0 {
			return true
		}
	}
	return false
}
