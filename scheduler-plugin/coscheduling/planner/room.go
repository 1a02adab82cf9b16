// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"math"
	"slices"
)

// Room reports whether a gang fits on some nodes while their free resources change. A change takes time only for the
// node that changes. Fits usually decides by one of these rules, in a time that does not depend on the number of nodes:
//
//   - The gang does not fit if there is too little room for the members of a class, or for as many of the smallest
//     members as the gang needs, or too little of a resource.
//   - The gang fits if it fitted before, and the places of that time are still free.
//
// If neither rule decides, the gang is packed again. For a gang of one class the first rule is exact.
type Room struct {
	world *World
	gang  *Gang
	nodes []int
	has   []bool // by node of the world: whether it is one of nodes
	// bounds are sums over the nodes. The gang does not fit if one of the sums is too small.
	bounds []bound
	// needs is what the last successful packing takes of each node, nil for nothing. packed reports that there was a
	// successful packing. short counts the nodes on which less than needs is free now.
	needs  [][]int64
	packed bool
	short  int
}

// bound is how many members of a class the nodes have room for, counted node by node.
type bound struct {
	class  Class
	needed int // at least, if the gang fits
	slots  int
}

// NewRoom returns a Room for a gang. It has no nodes until On adds some. From then on, the free resources of these
// nodes may be changed only by Change.
func NewRoom(world *World, gang *Gang) *Room {
	r := &Room{world: world, gang: gang, has: make([]bool, len(world.Nodes)), needs: make([][]int64, len(world.Nodes))}
	if len(gang.Classes) == 1 {
		r.bounds = []bound{{class: gang.Classes[0], needed: needed(gang)}}
	} else if len(gang.Classes) > 1 {
		for _, class := range gang.Classes {
			if least := gang.Min - (gang.size() - class.Count); least > 0 {
				r.bounds = append(r.bounds, bound{class: class, needed: least})
			}
		}
		least := smallest(gang, len(world.Nodes))
		r.bounds = append(r.bounds, bound{class: least, needed: needed(gang)})
		for i := range world.Resources {
			if unit, units := leastOf(gang, i); units > 0 {
				request := make([]int64, len(world.Resources))
				request[i] = unit
				r.bounds = append(r.bounds, bound{class: Class{Request: request, Eligible: least.Eligible}, needed: units})
			}
		}
	}
	return r
}

// leastOf returns how much of a resource the needed members take at least, as a number of units. unit is an amount that
// divides each member's request. units is 0 if the members take nothing of the resource, or too much to count.
func leastOf(gang *Gang, resource int) (unit int64, units int) {
	var classes []Class
	for _, class := range gang.Classes {
		classes = append(classes, class)
		for a, b := class.Request[resource], unit; ; a, b = b, a%b {
			if b == 0 {
				unit = a
				break
			}
		}
	}
	if unit == 0 {
		return 0, 0
	}
	slices.SortFunc(classes, func(a, b Class) int { return cmp.Compare(a.Request[resource], b.Request[resource]) })
	left := needed(gang)
	for _, class := range classes {
		n, each := min(left, class.Count), class.Request[resource]/unit
		if n > 0 && each > int64((math.MaxInt-units)/n) {
			return 0, 0
		}
		units += n * int(each)
		left -= n
	}
	return unit, units
}

// On sets the nodes of the room.
func (r *Room) On(nodes []int) {
	r.forget()
	for _, n := range r.nodes {
		r.has[n] = false
	}
	for i := range r.bounds {
		r.bounds[i].slots = 0
	}
	r.nodes = nodes
	for _, n := range nodes {
		r.has[n] = true
		r.count(n, 1)
	}
}

// smallest returns a class that fits wherever any class of the gang fits.
func smallest(gang *Gang, nodes int) Class {
	least := Class{Request: append([]int64(nil), gang.Classes[0].Request...), Eligible: make([]bool, nodes)}
	for _, class := range gang.Classes {
		for r, request := range class.Request {
			least.Request[r] = min(least.Request[r], request)
		}
		for n := range least.Eligible {
			least.Eligible[n] = least.Eligible[n] || class.eligible(n)
		}
	}
	return least
}

// count adds the room on a node to the bounds, or subtracts it if sign is -1.
func (r *Room) count(node, sign int) {
	free := r.world.Nodes[node].Free
	for i := range r.bounds {
		if b := &r.bounds[i]; b.class.eligible(node) {
			b.slots += sign * min(b.class.slots(free), b.needed)
		}
	}
	if r.packed && isShort(free, r.needs[node]) {
		r.short += sign
	}
}

// isShort reports whether less is free than needed. A resource that no member requests does not count, so an
// overcommitted node does no harm.
func isShort(free, need []int64) bool {
	for i, n := range need {
		if n > 0 && free[i] < n {
			return true
		}
	}
	return false
}

// Change adds an amount of resources to what is free on a node, or subtracts it if sign is -1. It ignores nodes that
// are not in the Room.
func (r *Room) Change(node int, amount []int64, sign int64) {
	if !r.has[node] {
		return
	}
	r.count(node, -1)
	free := r.world.Nodes[node].Free
	for i, a := range amount {
		free[i] += sign * a
	}
	r.count(node, 1)
}

// Fits reports whether the gang's minima fit. If packs is false, Fits does not pack the gang again, and returns false
// where only packing could decide.
func (r *Room) Fits(packs bool) bool {
	if !attainable(r.gang) {
		return false
	}
	for i := range r.bounds {
		if r.bounds[i].slots < r.bounds[i].needed {
			return false
		}
	}
	switch {
	case len(r.gang.Classes) == 1, r.packed && r.short == 0:
		return true
	case !packs:
		return false
	}
	least := *r.gang
	least.LeastOnly = true
	p, ok := pack(r.world, &least, r.nodes)
	if !ok && !r.gang.LeastOnly {
		p, ok = pack(r.world, r.gang, r.nodes)
	}
	if ok {
		r.keep(p)
	}
	return ok
}

// keep remembers a successful packing.
func (r *Room) keep(p *packing) {
	r.forget()
	for at, members := range p.counts {
		class, node := at[0], at[1]
		if r.needs[node] == nil {
			r.needs[node] = make([]int64, len(r.world.Resources))
		}
		for i, request := range p.gang.Classes[class].Request {
			r.needs[node][i] += request * int64(members)
		}
	}
	r.packed = true
}

// forget drops the remembered packing.
func (r *Room) forget() {
	for _, n := range r.nodes {
		r.needs[n] = nil
	}
	r.packed, r.short = false, 0
}
