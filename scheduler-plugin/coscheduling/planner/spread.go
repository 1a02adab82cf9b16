// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import "slices"

// Spread keeps the numbers of a class's members in the domains of a topology close to each other: where a member
// is put there are at most MaxSkew more than in the domain that has fewest.
type Spread struct {
	// Domain is the domain of each node of the World, by its index in Counts; -1 for none. Where there is none,
	// no member may be.
	Domain []int
	// Counts are how many Pods count in each domain already.
	Counts []int
	// MaxSkew is at least 1.
	MaxSkew int
}

// spreading is a Spread with the members that are placed.
type spreading struct {
	*Spread
	counts      []int
	least, atIt int // the fewest Pods of a domain, and how many domains have no more
}

func newSpreading(s *Spread) *spreading {
	sp := &spreading{Spread: s, counts: slices.Clone(s.Counts)}
	sp.findLeast()
	return sp
}

func (s *spreading) findLeast() {
	s.least, s.atIt = 0, 0
	if len(s.counts) > 0 {
		s.least = slices.Min(s.counts)
	}
	for _, n := range s.counts {
		if n == s.least {
			s.atIt++
		}
	}
}

// allows reports whether one more member may be on a node.
func (s *spreading) allows(node int) bool {
	d := s.Domain[node]
	return d >= 0 && s.counts[d]+1-s.least <= s.MaxSkew
}

// add counts a member on a node.
func (s *spreading) add(node int) {
	d := s.Domain[node]
	if s.counts[d]++; s.counts[d] == s.least+1 {
		if s.atIt--; s.atIt == 0 {
			s.findLeast()
		}
	}
}

// placeEvenly packs up to n more members of a class so that all its spreads allow each of them, in the order in which they are
// packed. It returns how many found a place.
func (p *packing) placeEvenly(class, n int) int {
	c := &p.gang.Classes[class]
	if p.spreads[class] == nil {
		for i := range c.Spreads {
			p.spreads[class] = append(p.spreads[class], newSpreading(&c.Spreads[i]))
		}
	}
	spreads, done := p.spreads[class], 0
	disallows := func(node int) bool {
		return slices.ContainsFunc(spreads, func(s *spreading) bool { return !s.allows(node) })
	}
	for progress := true; progress && done < n && !p.gang.isOver(); {
		progress = false
		for i, node := range p.nodes {
			for done < n && !disallows(node) && p.put(class, i, 1) == 1 {
				for _, s := range spreads {
					s.add(node)
				}
				p.sequence[class] = append(p.sequence[class], node)
				done, progress = done+1, true
			}
		}
	}
	return done
}
