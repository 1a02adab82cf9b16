// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"math"
	"slices"
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
	slices.SortFunc(all, func(a, b ranked) int {
		x, y := &world.Nodes[a.node], &world.Nodes[b.node]
		return cmp.Or(-cmp.Compare(x.Preferred, y.Preferred), a.fit.compare(b.fit), -cmp.Compare(x.Score, y.Score), cmp.Compare(a.node, b.node))
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
	// lasts reports that the node is in use for as long as the gang runs.
	lasts bool
	// left is how much is left of the resource of which least is left, in parts of what the gang requests of it.
	left float64
}

// compare returns a negative number if the gang fits better with f than with other: first on a node that holds all of
// the gang, then on a node that is in use for as long, then where little is left for others.
func (f fit) compare(other fit) int {
	switch {
	case f.whole != other.whole:
		return first(f.whole)
	case f.lasts != other.lasts:
		return first(f.lasts)
	}
	return cmp.Compare(f.left, other.left)
}

// requestOf returns what all members of a gang request together.
func requestOf(world *World, gang *Gang) []float64 {
	all := make([]float64, len(world.Resources))
	for c := range gang.Classes {
		for r, request := range gang.Classes[c].Request {
			all[r] += float64(request) * float64(gang.Classes[c].Count)
		}
	}
	return all
}

// fitOn returns how well the whole gang fits on a node. `request` is what all members request together.
func fitOn(node *Node, gang *Gang, n int, request []float64) fit {
	left, suffice := leftOf(node.Free, request)
	if !suffice || !mayShare(gang, n) {
		return fit{}
	}
	return fit{whole: true, lasts: node.Lasts, left: left}
}

// leftOf returns what is left of the resource of which least is left, as a part of the request, and whether the free
// quantities suffice. A request of nothing leaves nothing.
func leftOf(free []int64, request []float64) (left float64, suffice bool) {
	left = math.Inf(1)
	for r, wanted := range request {
		if wanted > 0 {
			left = min(left, (float64(free[r])-wanted)/wanted)
		}
	}
	if math.IsInf(left, 1) {
		left = 0
	}
	return left, left >= 0
}

// mayShare reports whether all members of a gang may be on one node, apart from resources and spread.
func mayShare(gang *Gang, node int) bool {
	return !slices.ContainsFunc(gang.Classes, func(c Class) bool {
		return !c.eligible(node) || c.PerNode > 0 && c.PerNode < c.Count || len(c.Repels) > 0
	})
}
