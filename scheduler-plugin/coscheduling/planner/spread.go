// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"slices"
	"strconv"
)

// Spread keeps the numbers of a class's members in the domains of a topology close to each other: a domain may have at
// most MaxSkew members more than the domain with the fewest.
type Spread struct {
	// Domain is the domain of each node of the World, as an index into Counts; -1 for a node without a domain, where no
	// member may be placed.
	Domain []int
	// Counts are how many Pods each domain already has.
	Counts []int
	// MaxSkew is at least 1.
	MaxSkew int
}

// spreading is a Spread with the placed members.
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

// placeEvenly packs up to n more members of a class, as far as all spreads of the class allow each of them. It fills
// nodes in packing order; of nodes in the same domains it fills the first one first. It returns how many members found
// a place.
func (p *packing) placeEvenly(class, n int) int {
	c := &p.gang.Classes[class]
	if p.spreads[class] == nil {
		for i := range c.Spreads {
			p.spreads[class] = append(p.spreads[class], newSpreading(&c.Spreads[i]))
		}
	}
	spreads, done := p.spreads[class], 0
	var alike [][]int // by index in nodes, without those that are full
	index := make(map[string]int)
	for i, node := range p.nodes {
		var domains []byte
		for _, s := range spreads {
			domains = append(strconv.AppendInt(domains, int64(s.Domain[node]), 10), ' ')
		}
		g, known := index[string(domains)]
		if !known {
			g = len(alike)
			index[string(domains)], alike = g, append(alike, nil)
		}
		alike[g] = append(alike[g], i)
	}
	disallows := func(node int) bool {
		return slices.ContainsFunc(spreads, func(s *spreading) bool { return !s.allows(node) })
	}
	for progress := true; progress && done < n && !p.gang.isOver(); {
		progress = false
		for g := range alike {
			for done < n && len(alike[g]) > 0 && !disallows(p.nodes[alike[g][0]]) {
				node := p.nodes[alike[g][0]]
				if p.put(class, alike[g][0], 1) == 0 {
					alike[g] = alike[g][1:]
					continue
				}
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
