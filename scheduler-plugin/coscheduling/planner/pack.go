// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"slices"
)

// packing is a partial placement on some nodes of a world.
//
// Invariant: free is what Nodes had minus what the placed members request, and never below zero because of a placed
// member.
type packing struct {
	gang   *Gang
	nodes  []int           // in filling order
	free   map[int][]int64 // copied from the world on first use
	placed []int           // per class
	counts map[[2]int]int  // {class, node} -> members
	used   [][]int         // per class, where in nodes those are that have members
	world  *World

	spreads  [][]*spreading // per class
	sequence [][]int        // per class with spreads, the node of each member, in the order in which they were placed
}

func newPacking(world *World, gang *Gang, nodes []int) *packing {
	return &packing{
		gang:   gang,
		nodes:  nodes,
		free:   make(map[int][]int64),
		placed: make([]int, len(gang.Classes)),
		counts: make(map[[2]int]int),
		used:   make([][]int, len(gang.Classes)),
		world:  world,

		spreads:  make([][]*spreading, len(gang.Classes)),
		sequence: make([][]int, len(gang.Classes)),
	}
}

// freeOn returns what is left on a node.
func (p *packing) freeOn(node int) []int64 {
	if free, ok := p.free[node]; ok {
		return free
	}
	return p.world.Nodes[node].Free
}

// place packs n more members of a class, each on the first node with room, and returns how many found a place.
func (p *packing) place(class, n int) int {
	c := &p.gang.Classes[class]
	done := 0
	if p.gang.isOver() {
		return 0
	}
	if len(c.Spreads) > 0 {
		done = p.placeEvenly(class, n)
	}
	for i, node := range p.nodes {
		if done == n {
			break
		}
		fit := p.put(class, i, n-done)
		if done += fit; len(c.Spreads) > 0 {
			p.sequence[class] = append(p.sequence[class], slices.Repeat([]int{node}, fit)...)
		}
	}
	p.placed[class] += done
	return done
}

// put packs up to n more members of a class on one of the nodes, and returns how many fit.
func (p *packing) put(class, i, n int) int {
	c, node := &p.gang.Classes[class], p.nodes[i]
	if !c.eligible(node) || p.isRepelled(c, node) {
		return 0
	}
	free := p.freeOn(node)
	fit := c.slots(free)
	key := [2]int{class, node}
	if c.PerNode > 0 {
		fit = min(fit, c.PerNode-p.counts[key])
	}
	fit = min(fit, n)
	if fit <= 0 {
		return 0
	}
	if _, ok := p.free[node]; !ok {
		free = slices.Clone(free)
		p.free[node] = free
	}
	for r, request := range c.Request {
		free[r] -= request * int64(fit)
	}
	if p.counts[key] == 0 {
		p.used[class] = append(p.used[class], i)
	}
	p.counts[key] += fit
	return fit
}

// isRepelled reports whether a node holds a member of a class that may not share a node with members of c.
func (p *packing) isRepelled(c *Class, node int) bool {
	return slices.ContainsFunc(c.Repels, func(other int) bool { return p.counts[[2]int{other, node}] > 0 })
}

// total returns how many members are placed.
func (p *packing) total() int {
	n := 0
	for _, placed := range p.placed {
		n += placed
	}
	return n
}

// plan returns the packing as a Plan.
func (p *packing) plan() Plan {
	plan := Plan{Nodes: p.nodes}
	for class := range p.gang.Classes {
		if len(p.gang.Classes[class].Spreads) > 0 {
			for _, node := range p.sequence[class] {
				plan.Assignments = append(plan.Assignments, Assignment{Class: class, Node: node, Count: 1})
			}
			continue
		}
		slices.Sort(p.used[class]) // the rest may have found places before those that were needed
		for _, i := range p.used[class] {
			node := p.nodes[i]
			plan.Assignments = append(plan.Assignments, Assignment{Class: class, Node: node, Count: p.counts[[2]int{class, node}]})
		}
	}
	return plan
}

// pack places the whole gang on nodes. If not all members fit, it places the needed members first and, unless the gang
// asks for the needed ones only, then as many others as fit, by priority. If the minima are not met, it returns false
// and the packing that placed the most needed members.
func pack(world *World, gang *Gang, nodes []int) (*packing, bool) {
	orders := Orders(world, gang, nodes)
	for _, order := range orders {
		if gang.LeastOnly {
			break
		}
		p := newPacking(world, gang, nodes)
		if p.placeRest(order, gang.size()); p.total() == gang.size() {
			return p, p.holds()
		}
	}
	var best *packing
	for _, ranked := range gang.rankings() {
		for _, order := range orders {
			p := newPacking(world, gang, nodes)
			p.placeNeeded(ranked(order), ranked(bySize(gang)))
			if p.holds() {
				if !gang.LeastOnly {
					p.placeRest(byPriority(gang, order), gang.size())
				}
				return p, true
			}
			if best == nil || p.total() > best.total() {
				best = p
			}
		}
	}
	return best, false
}

// rankings returns the ways in which to reorder classes for placing the needed members. The first sorts by priority.
// The second changes nothing, in case that the minima can't be met by priority.
func (g *Gang) rankings() []func(order []int) []int {
	asItIs := func(order []int) []int { return order }
	if !slices.ContainsFunc(g.Classes, func(c Class) bool { return c.Priority != g.Classes[0].Priority }) {
		return []func([]int) []int{asItIs}
	}
	return []func([]int) []int{func(order []int) []int { return byPriority(g, order) }, asItIs}
}

// byPriority returns an order of the classes with the highest priority first.
func byPriority(gang *Gang, order []int) []int {
	ranked := slices.Clone(order)
	slices.SortStableFunc(ranked, func(a, b int) int { return -cmp.Compare(gang.Classes[a].Priority, gang.Classes[b].Priority) })
	return ranked
}

// placeNeeded packs only the members that the minima need. Members of roles with a minimum come first, in the order
// `order`; then any members up to Min, in the order `free`.
func (p *packing) placeNeeded(order, free []int) {
	for _, class := range order {
		c := &p.gang.Classes[class]
		if left := p.gang.MinRole[c.Role] - p.inRole(c.Role); left > 0 {
			p.place(class, min(left, c.Count))
		}
	}
	p.placeRest(free, p.gang.Min)
}

// placeRest packs remaining members, class after class, until n are placed in all.
func (p *packing) placeRest(order []int, n int) {
	for _, class := range order {
		if left := min(n-p.total(), p.gang.Classes[class].Count-p.placed[class]); left > 0 {
			p.place(class, left)
		}
	}
}

// inRole returns how many members of a role are placed.
func (p *packing) inRole(role string) int {
	n := 0
	for class, placed := range p.placed {
		if p.gang.Classes[class].Role == role {
			n += placed
		}
	}
	return n
}

// holds reports whether the minima hold.
func (p *packing) holds() bool {
	for role, least := range p.gang.MinRole {
		if p.inRole(role) < least {
			return false
		}
	}
	return p.total() >= p.gang.Min
}

// bySize returns the classes, the smallest request first.
func bySize(gang *Gang) []int {
	order := make([]int, len(gang.Classes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return CompareRequests(gang.Classes[a].Request, gang.Classes[b].Request)
	})
	return order
}

// Orders returns the orders in which packing tries the classes:
//   - the class with the fewest places first, because the others have more choice
//   - the largest first, because small members fill gaps
//   - the smallest first, because more of them fit
func Orders(world *World, gang *Gang, nodes []int) [][]int {
	smallest := bySize(gang)
	if len(smallest) == 1 {
		return [][]int{smallest}
	}
	// More places than members count as just enough.
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
	largest := slices.Clone(smallest)
	slices.Reverse(largest)
	scarcest := slices.Clone(largest)
	slices.SortStableFunc(scarcest, func(a, b int) int { return cmp.Compare(spare[a], spare[b]) })
	return [][]int{scarcest, largest, smallest}
}

// CompareRequests compares requests by size. Quantities of different resources can't be compared. So the larger request
// is the one that is larger in more resources; if these are equally many, the first resource that differs decides.
func CompareRequests(a, b []int64) int {
	ahead := 0
	for r := range a {
		ahead += cmp.Compare(a[r], b[r])
	}
	return cmp.Or(ahead, slices.Compare(a, b))
}
