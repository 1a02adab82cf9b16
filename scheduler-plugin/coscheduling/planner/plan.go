// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"iter"
	"slices"
)

// Plans yields the placements with which the gang's minima hold, the best first. All of them are packed before the
// first is yielded; only the assignments of each plan are computed when it is yielded.
func Plans(world *World, gang *Gang) iter.Seq[Plan] {
	return func(yield func(Plan) bool) {
		if !attainable(gang) {
			return
		}
		candidates := candidates(world, gang)
		if needed(gang) > 0 {
			candidates = slices.DeleteFunc(candidates, func(c candidate) bool { return Exceeds(world, gang, c.nodes) })
		}
		if len(candidates) == 1 {
			if p, ok := pack(world, gang, order(world, gang, candidates[0].nodes, gang.Levels, 0)); ok {
				yield(p.plan())
			}
			return
		}
		for _, c := range ranked(world, gang, candidates) {
			if !yield(c.packing.plan()) {
				return
			}
		}
	}
}

// attainable reports whether the gang has as many members as its minima ask for.
func attainable(gang *Gang) bool {
	if gang.size() < gang.Min {
		return false
	}
	have := make(map[string]int)
	for i := range gang.Classes {
		have[gang.Classes[i].Role] += gang.Classes[i].Count
	}
	for role, n := range gang.MinRole {
		if have[role] < n {
			return false
		}
	}
	return true
}

// candidate is a set of nodes that all Required levels allow together.
type candidate struct {
	domain string // of the narrowest Required level
	nodes  []int
}

// candidates splits the nodes by the domains of the Required levels. A node that has no domain at one of these levels
// is in no candidate.
func candidates(world *World, gang *Gang) []candidate {
	var required []int
	for i, level := range gang.Levels {
		if level.Required {
			required = append(required, i)
		}
	}
	if len(required) == 0 && len(world.Nodes) > 0 {
		everywhere := make([]int, len(world.Nodes))
		for n := range everywhere {
			everywhere[n] = n
		}
		return []candidate{{nodes: everywhere}}
	}
	var all []candidate
	index := make(map[string]int)
nodes:
	for n := range world.Nodes {
		domain, key := "", ""
		for _, level := range required {
			domain = world.Nodes[n].Domains[level]
			fixed := gang.Levels[level].Fixed
			if domain == "" || fixed != "" && fixed != domain {
				continue nodes
			}
			key += domain + "\x00"
		}
		i, ok := index[key]
		if !ok {
			i = len(all)
			index[key] = i
			all = append(all, candidate{domain: domain})
		}
		all[i].nodes = append(all[i].nodes, n)
	}
	return all
}

// packed is a candidate in which the minima hold.
type packed struct {
	candidate candidate
	packing   *packing
	spare     int
}

// ranked packs each candidate, and returns those in which the minima hold in the order of Plans. Candidates with more
// placed members come first, then the tightest, so that the largest room is left for the next gang.
func ranked(world *World, gang *Gang, candidates []candidate) []packed {
	var fits []packed
	for _, c := range candidates {
		p, ok := pack(world, gang, order(world, gang, c.nodes, gang.Levels, 0))
		if ok {
			fits = append(fits, packed{candidate: c, packing: p, spare: Spare(world, gang, c.nodes)})
		}
	}
	slices.SortStableFunc(fits, func(a, b packed) int {
		return cmp.Or(
			-cmp.Compare(a.packing.total(), b.packing.total()),
			cmp.Compare(a.spare, b.spare),
			cmp.Compare(a.candidate.domain, b.candidate.domain),
		)
	})
	return fits
}

// Spare returns how many members of the gang's first class the nodes could hold. It is a measure with which to compare
// the room of candidates.
func Spare(world *World, gang *Gang, nodes []int) int {
	if len(gang.Classes) == 0 {
		return 0
	}
	c := &gang.Classes[0]
	room := 0
	for _, n := range nodes {
		if c.eligible(n) {
			room += min(c.slots(world.Nodes[n].Free), boundless)
		}
	}
	return room
}

// boundless is the room on a node for members that request nothing.
const boundless = 1 << 20

// order returns the order in which nodes are filled; see bestFirst. The nodes of a domain of a Preferred level are next
// to each other. The domain of placed members comes first, then the tightest domain that holds the whole gang. If no
// domain holds the whole gang, the largest come first, so that the gang uses few domains.
func order(world *World, gang *Gang, nodes []int, levels []Level, level int) []int {
	for level < len(levels) && levels[level].Required {
		level++
	}
	if level == len(levels) {
		return bestFirst(world, gang, nodes)
	}

	type group struct {
		domain string
		nodes  []int
		room   int
		whole  bool
	}
	var groups []group
	index := make(map[string]int)
	for _, n := range nodes {
		domain := world.Nodes[n].Domains[level]
		i, ok := index[domain]
		if !ok {
			i = len(groups)
			index[domain] = i
			groups = append(groups, group{domain: domain})
		}
		groups[i].nodes = append(groups[i].nodes, n)
	}
	for i := range groups {
		g := &groups[i]
		g.nodes = order(world, gang, g.nodes, levels, level+1)
		g.room = Spare(world, gang, g.nodes)
		p, ok := pack(world, gang, g.nodes)
		g.whole = ok && p.total() == gang.size()
	}
	fixed := levels[level].Fixed
	slices.SortStableFunc(groups, func(a, b group) int {
		if a.domain == fixed != (b.domain == fixed) && fixed != "" {
			return first(a.domain == fixed)
		}
		if a.whole != b.whole {
			return first(a.whole)
		}
		// A node without the label is in no domain, and comes last.
		if (a.domain == "") != (b.domain == "") {
			return first(b.domain == "")
		}
		if a.whole {
			return cmp.Or(cmp.Compare(a.room, b.room), cmp.Compare(a.domain, b.domain))
		}
		return cmp.Or(-cmp.Compare(a.room, b.room), cmp.Compare(a.domain, b.domain))
	})
	sorted := make([]int, 0, len(nodes))
	for _, g := range groups {
		sorted = append(sorted, g.nodes...)
	}
	return sorted
}

// first returns the result of a comparison that puts a before b if `yes`.
func first(yes bool) int {
	if yes {
		return -1
	}
	return 1
}
