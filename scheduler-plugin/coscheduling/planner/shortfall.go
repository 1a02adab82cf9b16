// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import "math"

// Shortfall says why a Gang has no Plan.
type Shortfall struct {
	// Needed is how many members have to be placed. A candidate is a set of nodes that may hold the gang, such as a
	// rack. Placed is how many members could be placed in the best candidate. Packing members of several classes may
	// miss a better way, so more may have room, but never more than Most.
	Needed, Placed, Most int
	// Role is the role of the members that found no place, empty for none.
	Role string
	// Eligible is how many nodes of the best candidate may hold a member that found no place, if resources are left
	// aside.
	Eligible int
	// Resource is the scarcest resource for these members. Missing is the smallest amount by which the resource falls
	// short, in the resource's unit. They are empty and 0 if no single resource is the reason.
	Resource string
	Missing  int64
	// Key and Domain name the best candidate where a level is Required.
	Key, Domain string
	// NoDomain reports that a level is Required and no node has the label.
	NoDomain bool
}

// Explain returns what the gang lacks. The result is meaningful only if Plans yields nothing.
func Explain(world *World, gang *Gang) Shortfall {
	short := Shortfall{Needed: needed(gang)}
	var best *packing
	var where candidate
	all := candidates(world, gang)
	for _, c := range all {
		p := newPacking(world, gang, c.nodes)
		p.placeNeeded(Orders(world, gang, c.nodes)[0], bySize(gang))
		most := 0
		for i := range gang.Classes {
			most += gang.Classes[i].heldBy(world, c.nodes, gang.Classes[i].Count)
		}
		short.Most = max(short.Most, min(most, short.Needed))
		if best == nil || p.total() > best.total() {
			best, where = p, c
		}
	}
	for i := len(gang.Levels) - 1; i >= 0; i-- {
		if gang.Levels[i].Required {
			short.Key, short.Domain = gang.Levels[i].Key, where.domain
			short.NoDomain = len(all) == 0
			break
		}
	}
	if best == nil {
		return short
	}
	short.Placed = best.total()
	for class := range gang.Classes {
		if left := best.lacks(class); left > 0 {
			short.blame(world, best, class, left)
			break
		}
	}
	return short
}

// needed returns how many members the minima need. This may be more than Min, if the minima of roles add up to more.
func needed(gang *Gang) int {
	roles := 0
	for _, n := range gang.MinRole {
		roles += n
	}
	return max(gang.Min, roles)
}

// lacks returns how many more members of a class the minima could use.
func (p *packing) lacks(class int) int {
	c := &p.gang.Classes[class]
	left := max(p.gang.MinRole[c.Role]-p.inRole(c.Role), 0)
	left = max(left, p.gang.Min-p.total())
	return min(left, c.Count-p.placed[class])
}

// blame finds the resource that allows the fewest more members of a class.
func (s *Shortfall) blame(world *World, p *packing, class, left int) {
	c := &p.gang.Classes[class]
	s.Role = c.Role
	room := make([]int, len(c.Request))
	for _, node := range p.nodes {
		if !c.eligible(node) {
			continue
		}
		s.Eligible++
		free := p.freeOn(node)
		for r, request := range c.Request {
			if request > 0 {
				room[r] += int(max(free[r], 0) / request)
			}
		}
	}
	fewest := math.MaxInt
	for r, request := range c.Request {
		if request > 0 && room[r] < min(fewest, left) {
			fewest = room[r]
			s.Resource = world.Resources[r]
			s.Missing = int64(left-room[r]) * request
		}
	}
}
