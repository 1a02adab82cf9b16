// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
)

// packing is a partial placement on some nodes of a world.
//
// Invariant: free is what Nodes had minus what the placed members request, and
// is never below zero because of them.
type packing struct {
	gang   *Gang
	nodes  []int           // in filling order
	free   map[int][]int64 // copied from the world on first use
	placed []int           // per class
	counts map[[2]int]int  // {class, node} -> members
	world  *World
}

func newPacking(world *World, gang *Gang, nodes []int) *packing {
	return &packing{
		gang:   gang,
		nodes:  nodes,
		free:   make(map[int][]int64, len(nodes)),
		placed: make([]int, len(gang.Classes)),
		counts: make(map[[2]int]int),
		world:  world,
	}
}

// freeOn is what is left on a node.
func (p *packing) freeOn(node int) []int64 {
	if free, ok := p.free[node]; ok {
		return free
	}
	return p.world.Nodes[node].Free
}

// place packs n more members of a class, first fit, and returns how many found
// a place.
func (p *packing) place(class, n int) int {
	c := &p.gang.Classes[class]
	done := 0
	for _, node := range p.nodes {
		if done == n {
			break
		}
		if !c.eligible(node) {
			continue
		}
		free := p.freeOn(node)
		fit := c.slots(free)
		key := [2]int{class, node}
		if c.PerNode > 0 {
			fit = min(fit, c.PerNode-p.counts[key])
		}
		fit = min(fit, n-done)
		if fit <= 0 {
			continue
		}
		if _, ok := p.free[node]; !ok {
			free = slices.Clone(free)
			p.free[node] = free
		}
		for r, request := range c.Request {
			free[r] -= request * int64(fit)
		}
		p.counts[key] += fit
		done += fit
	}
	p.placed[class] += done
	return done
}

// placeAll packs want[class] members of each class, in the order of classes
// given, and says whether all found a place.
func (p *packing) placeAll(order, want []int) bool {
	all := true
	for _, class := range order {
		if want[class] > 0 && p.place(class, want[class]) < want[class] {
			all = false
		}
	}
	return all
}

// total is how many members are placed.
func (p *packing) total() int {
	n := 0
	for _, placed := range p.placed {
		n += placed
	}
	return n
}

// plan is the packing as a result.
func (p *packing) plan() Plan {
	plan := Plan{Nodes: p.nodes}
	for class := range p.gang.Classes {
		for _, node := range p.nodes {
			if n := p.counts[[2]int{class, node}]; n > 0 {
				plan.Assignments = append(plan.Assignments, Assignment{Class: class, Node: node, Count: n})
			}
		}
	}
	return plan
}

// pack places the whole gang on nodes, or the needed members and then as many
// others as fit. The bool says whether the needed ones fit; if not, the packing
// is the one that placed the most of them.
func pack(world *World, gang *Gang, nodes []int) (*packing, bool) {
	all := make([]int, len(gang.Classes))
	for i := range gang.Classes {
		all[i] = gang.Classes[i].Count
	}
	need := needed(gang)
	orders := classOrders(world, gang, nodes)
	for _, order := range orders {
		if p := newPacking(world, gang, nodes); p.placeAll(order, all) {
			return p, true
		}
	}
	var best *packing
	for _, order := range orders {
		p := newPacking(world, gang, nodes)
		if p.placeAll(order, need) {
			for _, class := range order {
				p.place(class, gang.Classes[class].Count-p.placed[class])
			}
			return p, true
		}
		if best == nil || p.total() > best.total() {
			best = p
		}
	}
	return best, false
}

// needed is how many members of each class are packed before all others: the
// minimum of each role, then others up to Min, the smallest requests first,
// because they fit most easily.
func needed(gang *Gang) []int {
	bySize := make([]int, len(gang.Classes))
	for i := range bySize {
		bySize[i] = i
	}
	slices.SortStableFunc(bySize, func(a, b int) int {
		return compareRequests(gang.Classes[a].Request, gang.Classes[b].Request)
	})

	need := make([]int, len(gang.Classes))
	left := gang.Min
	role := make(map[string]int, len(gang.MinRole))
	for name, n := range gang.MinRole {
		role[name] = n
	}
	for _, class := range bySize {
		c := &gang.Classes[class]
		take := min(role[c.Role], c.Count)
		if take <= 0 {
			continue
		}
		need[class] = take
		role[c.Role] -= take
		left -= take
	}
	for _, class := range bySize {
		take := min(left, gang.Classes[class].Count-need[class])
		if take <= 0 {
			continue
		}
		need[class] += take
		left -= take
	}
	return need
}

// classOrders are the orders in which packing tries the classes: the one with
// the fewest places first, because others have more choice, and the largest
// first, because small ones fill gaps.
func classOrders(world *World, gang *Gang, nodes []int) [][]int {
	first := make([]int, len(gang.Classes))
	for i := range first {
		first[i] = i
	}
	if len(first) == 1 {
		return [][]int{first}
	}
	// Enough places for a class's members are as good as any more.
	spare := make([]int, len(gang.Classes))
	for i := range gang.Classes {
		c := &gang.Classes[i]
		for _, node := range nodes {
			if c.eligible(node) && spare[i] < 2*c.Count {
				spare[i] += min(c.slots(world.Nodes[node].Free), c.Count)
			}
		}
		spare[i] = min(spare[i], 2*c.Count) - c.Count
	}
	larger := func(a, b int) int {
		return compareRequests(gang.Classes[b].Request, gang.Classes[a].Request)
	}
	second := slices.Clone(first)
	slices.SortStableFunc(first, func(a, b int) int {
		return cmp.Or(cmp.Compare(spare[a], spare[b]), larger(a, b))
	})
	slices.SortStableFunc(second, larger)
	return [][]int{first, second}
}

// compareRequests orders requests by size: more of more resources is larger.
// Resources have different units, so it counts in how many one exceeds the
// other before it looks at quantities.
func compareRequests(a, b []int64) int {
	ahead := 0
	for r := range a {
		ahead += cmp.Compare(a[r], b[r])
	}
	return cmp.Or(ahead, slices.Compare(a, b))
}
