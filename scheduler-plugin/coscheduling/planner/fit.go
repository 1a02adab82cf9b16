// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
	"time"
)

// bestFirst returns nodes in the order in which they are filled: first those that the members prefer, then those on
// which the gang fits best.
func bestFirst(world *World, gang *Gang, nodes []int) []int {
	type ranked struct {
		node int
		fit  fit
	}
	all, request := make([]ranked, len(nodes)), requestOf(world, gang)
	for i, n := range nodes {
		all[i] = ranked{n, fitOn(&world.Nodes[n], gang, n, request)}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		x, y := &world.Nodes[a.node], &world.Nodes[b.node]
		return cmp.Or(-cmp.Compare(x.Preferred, y.Preferred), a.fit.compare(b.fit), -cmp.Compare(x.Score, y.Score))
	})
	sorted := make([]int, len(all))
	for i := range all {
		sorted[i] = all[i].node
	}
	return sorted
}

// fit says how well a whole gang fits on one node.
type fit struct {
	// whole reports that the node has room for all members. The rest is set only then.
	whole bool
	// longer is the node's Longer.
	longer time.Duration
	// left is how much would be left of the resource of which least is left, in parts of what the gang requests of it.
	left float64
}

// compare returns a negative number if the gang fits better with f than with other: first on a node that holds all of
// the gang, then where the node is in use for as little longer as possible, then where little is left for others.
func (f fit) compare(other fit) int {
	if f.whole != other.whole {
		return first(f.whole)
	}
	return cmp.Or(cmp.Compare(f.longer, other.longer), cmp.Compare(f.left, other.left))
}

// requestOf returns what all members of a gang request together.
func requestOf(world *World, gang *Gang) []int64 {
	all := make([]int64, len(world.Resources))
	for c := range gang.Classes {
		for r, request := range gang.Classes[c].Request {
			all[r] += request * int64(gang.Classes[c].Count)
		}
	}
	return all
}

// fitOn returns how well the whole gang fits on a node. `request` is what all members request together.
func fitOn(node *Node, gang *Gang, n int, request []int64) fit {
	left, suffice := leftOf(node.Free, request)
	if !suffice || !mayShare(gang, n) {
		return fit{}
	}
	return fit{whole: true, longer: node.Longer, left: left}
}

// leftOf returns what is left of the resource of which least is left, as a part of the request, and whether the free
// quantities suffice. A request of nothing leaves nothing.
func leftOf(free, request []int64) (left float64, suffice bool) {
	least, any := 0.0, false
	for r, wanted := range request {
		if wanted <= 0 {
			continue
		}
		if free[r] < wanted {
			return 0, false
		}
		if left := float64(free[r]-wanted) / float64(wanted); !any || left < least {
			least, any = left, true
		}
	}
	return least, true
}

// mayShare reports whether all members of a gang may be on one node, apart from resources.
func mayShare(gang *Gang, node int) bool {
	return !slices.ContainsFunc(gang.Classes, func(c Class) bool {
		return !c.eligible(node) || c.PerNode > 0 && c.PerNode < c.Count || len(c.Repels) > 0
	})
}
