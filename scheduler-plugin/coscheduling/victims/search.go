// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Pod is a Pod of a unit: where it is, what it takes there of each resource of
// the World, and how long it has run.
type Pod struct {
	Node    int
	Request []int64
	Lost    time.Duration
}

// Choice is what has to go so that the gang fits.
type Choice struct {
	// Pods are to go, as indexes in ascending order.
	Pods []int

	violations int
	highest    int64 // priority; below all others if nothing is taken
	lost       time.Duration
}

// compare is negative if c is the lesser loss: fewer protected Pods, else a lower
// highest priority, else less work.
func (c *Choice) compare(other *Choice) int {
	return cmp.Or(
		cmp.Compare(c.violations, other.violations),
		cmp.Compare(c.highest, other.highest),
		cmp.Compare(c.lost, other.lost),
		cmp.Compare(len(c.Pods), len(other.Pods)),
	)
}

// Search chooses units so that the gang fits, by packing alone. empty is the
// cluster without any of the Pods, which the units name by their index.
//
// A gang with a Required level fits into one of several domains, and what is the
// least to take in one says nothing of another. So each is searched, and there is
// a choice for each that can be made to fit, the least first. Without such a level
// there is one choice at most.
func Search(empty *planner.World, gang *planner.Gang, pods []Pod, units []Unit) []Choice {
	domains := planner.Candidates(empty, gang)
	domainOf := make([]int, len(empty.Nodes)) // from 1, 0 for none
	for d, nodes := range domains {
		for _, n := range nodes {
			domainOf[n] = d + 1
		}
	}
	podsIn, unitsIn := make([][]int, len(domains)+1), make([][]int, len(domains)+1)
	for p := range pods {
		d := domainOf[pods[p].Node]
		podsIn[d] = append(podsIn[d], p)
	}
	for u := range units {
		for _, p := range units[u].Pods {
			in := &unitsIn[domainOf[pods[p].Node]]
			if len(*in) == 0 || (*in)[len(*in)-1] != u {
				*in = append(*in, u)
			}
		}
	}
	world := &planner.World{Resources: empty.Resources, Nodes: slices.Clone(empty.Nodes)}
	for n := range world.Nodes {
		world.Nodes[n].Free = slices.Clone(empty.Nodes[n].Free)
	}
	gone := make([]bool, len(pods))
	var choices []Choice
	for d, nodes := range domains {
		s := &domainSearch{empty: empty, world: world, gang: gang, all: pods, gone: gone, nodes: nodes, pods: podsIn[d+1]}
		for _, u := range unitsIn[d+1] {
			s.units = append(s.units, units[u])
		}
		if choice, ok := s.search(); ok {
			choices = append(choices, choice)
		}
	}
	slices.SortStableFunc(choices, func(a, b Choice) int { return a.compare(&b) })
	return choices
}

// domainSearch is the search in one set of nodes.
type domainSearch struct {
	empty *planner.World
	world *planner.World // of which the nodes of the set are kept right
	gang  *planner.Gang
	all   []Pod
	gone  []bool // which of all are

	nodes []int // of the set
	pods  []int // that are on them
	units []Unit
}

func (s *domainSearch) search() (Choice, bool) {
	chosen, ok := Choose(s.units, func(taken []bool) bool {
		s.takeNone()
		for u, taken := range taken {
			if taken {
				s.set(s.units[u].Pods, true)
			}
		}
		return s.fits()
	})
	if !ok {
		return Choice{}, false
	}
	s.takeNone()
	for _, u := range chosen {
		s.set(s.units[u].Pods, true)
	}
	choice := Choice{highest: -1 << 32}
	for _, u := range chosen {
		unit := &s.units[u]
		left := len(s.trim(unit))
		choice.violations += min(unit.Violations, left)
		choice.highest = max(choice.highest, int64(unit.Priority))
	}
	for p, gone := range s.gone {
		if gone {
			choice.Pods = append(choice.Pods, p)
			choice.lost += s.all[p].Lost
		}
	}
	return choice, true
}

// trim gives back what a unit need not lose, if it can do without the rest. It
// returns what the unit loses.
//
// Which of its Pods a unit can best do without depends on where the gang needs the
// room. So it is not known before the search, which takes such a unit as a whole.
func (s *domainSearch) trim(unit *Unit) []int {
	if unit.Spares == nil {
		return unit.Pods
	}
	parts := make([]Unit, len(unit.Pods))
	for i, p := range unit.Pods {
		parts[i] = Unit{Lost: s.all[p].Lost, Pods: []int{p}}
	}
	chosen, _ := Choose(parts, func(taken []bool) bool {
		for i, p := range unit.Pods {
			s.gone[p] = taken[i]
		}
		return s.fits()
	})
	rest := make([]int, len(chosen))
	for i, c := range chosen {
		rest[i] = unit.Pods[c]
	}
	if !unit.Spares(rest) {
		rest = unit.Pods
	}
	s.set(unit.Pods, false)
	s.set(rest, true)
	return rest
}

func (s *domainSearch) takeNone() {
	clear(s.gone)
}

func (s *domainSearch) set(pods []int, gone bool) {
	for _, p := range pods {
		s.gone[p] = gone
	}
}

// fits says whether the gang fits without what is gone.
func (s *domainSearch) fits() bool {
	for _, n := range s.nodes {
		copy(s.world.Nodes[n].Free, s.empty.Nodes[n].Free)
	}
	for _, p := range s.pods {
		if !s.gone[p] {
			for r, request := range s.all[p].Request {
				s.world.Nodes[s.all[p].Node].Free[r] -= request
			}
		}
	}
	return planner.FitsOn(s.world, s.gang, s.nodes)
}
