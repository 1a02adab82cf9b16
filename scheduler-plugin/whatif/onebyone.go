// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// The planner packs nodes one after the other, and does not know which members want to be near which others. So each of
// its plans is checked against what members want of each other. If none holds, members are put one by one where most is
// free, which is roughly what the scheduler does then.

// tie is an affinity or anti-affinity term of a class that matches members of the gang.
type tie struct {
	key   string // of the topology
	of    int    // the class
	to    []bool // by class: whether the term matches it
	apart bool   // by anti-affinity
	// there is how many matching members are already placed, by domain.
	there map[string]int
}

// ties returns the ties of all classes, from the terms of waiting members. The terms of placed members are not
// included.
func (s *survey) ties(g *gang) []tie {
	placed := g.placedPods()
	var all []tie
	for c, class := range s.classes {
		for _, apart := range []bool{false, true} {
			terms := class.wants.Near
			if apart {
				terms = class.wants.Apart
			}
			for i := range terms {
				if t := s.tie(&terms[i], placed); t != nil {
					t.of, t.apart = c, apart
					all = append(all, *t)
				}
			}
		}
	}
	return all
}

// tie returns the tie for a term, nil if the term matches no member.
func (s *survey) tie(term *podclass.Term, placed []*corev1.Pod) *tie {
	t := &tie{key: term.Key, to: make([]bool, len(s.classes)), there: make(map[string]int)}
	for c, class := range s.classes {
		t.to[c] = term.Matches(class.members[0])
	}
	for _, other := range placed {
		if n, known := s.index[other.Spec.NodeName]; known && term.Matches(other) {
			t.there[s.nodes[n].Labels[t.key]]++
		}
	}
	if !slices.Contains(t.to, true) && len(t.there) == 0 {
		return nil
	}
	return t
}

// plan returns where the members go. If there is no place, `fits` is false, and `breaks` reports that there would be a
// place without affinity and anti-affinity between members.
func (s *survey) plan(g *gang) (found planner.Plan, fits, breaks bool) {
	ties := s.ties(g)
	for plan := range planner.Plans(s.world, s.gang) {
		if s.holds(ties, &plan) {
			return plan, true, false
		}
		breaks = true
	}
	world, gang := s.together(ties)
	for _, nodes := range planner.Candidates(world, gang) {
		if plan, ok := s.oneByOne(ties, nodes); ok {
			return plan, true, false
		}
	}
	if len(gang.Levels) > len(s.gang.Levels) { // maybe not all members have to be together
		for _, nodes := range planner.Candidates(s.world, s.gang) {
			if plan, ok := s.oneByOne(ties, nodes); ok {
				return plan, true, false
			}
		}
	}
	return found, false, breaks
}

// together returns a copy of the world and the gang with stricter topology: if affinity asks some members to be in one
// domain of a topology, all members have to be.
func (s *survey) together(ties []tie) (*planner.World, *planner.Gang) {
	world, gang := *s.world, *s.gang
	world.Nodes, gang.Levels = slices.Clone(world.Nodes), slices.Clone(gang.Levels)
	for _, t := range ties {
		if t.apart || slices.ContainsFunc(gang.Levels, func(l planner.Level) bool { return l.Key == t.key && l.Required }) {
			continue
		}
		gang.Levels = append(gang.Levels, planner.Level{Key: t.key, Required: true})
		for n, node := range s.nodes {
			world.Nodes[n].Domains = append(slices.Clone(world.Nodes[n].Domains), node.Labels[t.key])
		}
	}
	return &world, &gang
}

// holds reports whether a plan meets the conditions between members.
func (s *survey) holds(ties []tie, plan *planner.Plan) bool {
	if len(ties) == 0 {
		return true
	}
	p := newPutting(s, ties)
	for _, a := range plan.Assignments {
		p.count(a.Class, a.Node, a.Count)
	}
	for i := range ties {
		t := &ties[i]
		domains := 0
		for domain, counts := range p.domains[t.key] {
			if counts[t.of] == 0 {
				continue
			}
			domains++
			others := t.matches(domain, counts)
			if t.to[t.of] {
				others -= counts[t.of]
			}
			switch {
			case t.apart && (others > 0 || t.to[t.of] && counts[t.of] > 1) && domain != "":
				return false
			case !t.apart && (domain == "" || others == 0 && !(t.to[t.of] && domains == 1)):
				return false
			}
		}
	}
	return true
}

// matches returns how many members that match the term are in a domain.
func (t *tie) matches(domain string, counts []int) int {
	n := t.there[domain]
	for c, of := range t.to {
		if of {
			n += counts[c]
		}
	}
	return n
}

// putting is the state of placing members one by one.
type putting struct {
	*survey
	ties    []tie
	free    map[int][]int64
	on      map[int][]int               // members of each class by node
	domains map[string]map[string][]int // members of each class by topology and domain
	none    []int                       // of each class
}

func newPutting(s *survey, ties []tie) *putting {
	p := &putting{survey: s, ties: ties, free: make(map[int][]int64), on: make(map[int][]int), domains: make(map[string]map[string][]int),
		none: make([]int, len(s.classes))}
	for _, t := range ties {
		p.domains[t.key] = make(map[string][]int)
	}
	return p
}

// count records that members are on a node.
func (p *putting) count(class, node, n int) {
	if p.on[node] == nil {
		p.on[node] = make([]int, len(p.classes))
	}
	p.on[node][class] += n
	for key, domains := range p.domains {
		domain := p.nodes[node].Labels[key]
		if domains[domain] == nil {
			domains[domain] = make([]int, len(p.classes))
		}
		domains[domain][class] += n
	}
}

// freeOn returns what is left on a node.
func (p *putting) freeOn(node int) []int64 {
	if free := p.free[node]; free != nil {
		return free
	}
	return p.world.Nodes[node].Free
}

// allows reports whether a member of a class may be on a node, given the members placed so far.
func (p *putting) allows(class, node int) bool {
	c, on := &p.gang.Classes[class], p.on[node]
	if !c.Eligible[node] || on != nil && (c.PerNode > 0 && on[class] >= c.PerNode ||
		slices.ContainsFunc(c.Repels, func(other int) bool { return on[other] > 0 })) {
		return false
	}
	for r, request := range c.Request {
		if request > 0 && p.freeOn(node)[r] < request {
			return false
		}
	}
	for i := range p.ties {
		t := &p.ties[i]
		domain, has := p.nodes[node].Labels[t.key]
		counts := p.domains[t.key][domain]
		if counts == nil {
			counts = p.none
		}
		switch {
		case t.apart:
			if has && (t.of == class && t.matches(domain, counts) > 0 || t.to[class] && counts[t.of] > 0) {
				return false
			}
		case t.of != class:
		case !has:
			return false
		case t.matches(domain, counts) == 0 && !(t.to[class] && p.isFirst(t)):
			return false
		}
	}
	return true
}

// isFirst reports whether no member that matches the term is placed.
func (p *putting) isFirst(t *tie) bool {
	if len(t.there) > 0 {
		return false
	}
	for domain, counts := range p.domains[t.key] {
		if t.matches(domain, counts) > 0 {
			return false
		}
	}
	return true
}

// put places a member on the node where most is free.
func (p *putting) put(class int, nodes []int) bool {
	best := -1
	for _, n := range nodes {
		if (best < 0 || planner.CompareRequests(p.freeOn(n), p.freeOn(best)) > 0) && p.allows(class, n) {
			best = n
		}
	}
	if best < 0 {
		return false
	}
	free := slices.Clone(p.freeOn(best))
	for r, request := range p.gang.Classes[class].Request {
		free[r] -= request
	}
	p.free[best] = free
	p.count(class, best, 1)
	return true
}

// oneByOne places the members one by one on some nodes, the largest first. It returns false if the minima are not met.
func (s *survey) oneByOne(ties []tie, nodes []int) (planner.Plan, bool) {
	if planner.Exceeds(s.world, s.gang, nodes) {
		return planner.Plan{}, false
	}
	var left []int // a class for each member
	order := make([]int, len(s.classes))
	for c := range order {
		order[c] = c
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return planner.CompareRequests(s.gang.Classes[b].Request, s.gang.Classes[a].Request)
	})
	for _, c := range order {
		left = append(left, slices.Repeat([]int{c}, s.gang.Classes[c].Count)...)
	}
	p := newPutting(s, ties)
	for progress := true; progress; {
		progress = false
		var still []int
		for i, c := range left {
			switch {
			case i > 0 && left[i-1] == c && len(still) > 0 && still[len(still)-1] == c, !p.put(c, nodes): // as the one before
				still = append(still, c)
			default:
				progress = true
			}
		}
		left = still
	}
	total, roles := 0, make(map[string]int)
	plan := planner.Plan{Nodes: nodes}
	for node, counts := range p.on {
		for c, n := range counts {
			if n > 0 {
				total, roles[s.classes[c].role] = total+n, roles[s.classes[c].role]+n
				plan.Assignments = append(plan.Assignments, planner.Assignment{Class: c, Node: node, Count: n})
			}
		}
	}
	slices.SortFunc(plan.Assignments, func(a, b planner.Assignment) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Node, b.Node))
	})
	for role, least := range s.gang.MinRole {
		if roles[role] < least {
			return plan, false
		}
	}
	return plan, total > 0 && total >= s.gang.Min
}
