// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"cmp"
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Pod is a Pod of a unit: its node, the amount of each resource of the World that the Pod takes there, and how long the
// Pod has run.
type Pod struct {
	Node    int
	Request []int64
	Lost    time.Duration
}

// Choice is what has to be taken so that the gang fits.
type Choice struct {
	// Pods are the Pods to take, as indexes in ascending order.
	Pods []int

	// Ends is the time that is left until the end of the unit that ends last, Never if that is unknown.
	Ends time.Duration

	violations int
	young      int   // units that have not run for long enough
	highest    int64 // highest priority; below all others if nothing is taken
	lost       time.Duration
}

// compare returns a negative number if c loses less than `other`. It compares the number of Pods that a
// PodDisruptionBudget protects, the number of units that have not run for their minimum time, the latest end, the
// highest priority and the time that the Pods have run, in this order.
func (c *Choice) compare(other *Choice) int {
	return cmp.Or(
		cmp.Compare(c.violations, other.violations),
		cmp.Compare(c.young, other.young),
		cmp.Compare(c.Ends, other.Ends),
		cmp.Compare(c.highest, other.highest),
		cmp.Compare(c.lost, other.lost),
		cmp.Compare(len(c.Pods), len(other.Pods)),
	)
}

// Search chooses the units without which the gang fits, by packing alone. `empty` is the cluster without all of the
// Pods; units name Pods by index.
//
// A gang with a Required level has to be in one domain, and the loss in one domain says nothing about another. So
// Search looks at each domain. It returns a choice for each domain in which the gang can fit, the smallest loss first.
// If there is no Required level, there is at most one choice.
//
// Once isOver returns true, the search ends as soon as it has a choice. That choice has the lowest possible priority,
// but may have more Pods than necessary, and other domains are not searched. isOver may be nil.
func Search(empty *planner.World, gang *planner.Gang, pods []Pod, units []Unit, isOver func() bool) []Choice {
	domains := planner.Candidates(empty, gang)
	domainOf := make([]int, len(empty.Nodes)) // from 1, 0 for none
	for d, nodes := range domains {
		for _, n := range nodes {
			domainOf[n] = d + 1
		}
	}
	unitsIn := make([][]int, len(domains)+1)
	for u := range units {
		for _, p := range units[u].Pods {
			in := &unitsIn[domainOf[pods[p].Node]]
			if len(*in) == 0 || (*in)[len(*in)-1] != u {
				*in = append(*in, u)
			}
		}
	}
	world := empty.Clone()
	for p := range pods {
		for r, request := range pods[p].Request {
			world.Nodes[pods[p].Node].Free[r] -= request
		}
	}
	if isOver == nil {
		isOver = func() bool { return false }
	}
	s := &domainSearch{room: planner.NewRoom(world, gang), all: pods, taken: make([]int, len(pods)), isOver: isOver}
	var choices []Choice
	for d, nodes := range domains {
		if len(choices) > 0 && s.isOver() {
			break
		}
		s.room.On(nodes)
		s.units = s.units[:0]
		for _, u := range unitsIn[d+1] {
			s.units = append(s.units, units[u])
		}
		if choice, ok := s.search(); ok {
			choices = append(choices, choice)
		}
		s.leaveAll()
	}
	slices.SortStableFunc(choices, func(a, b Choice) int { return a.compare(&b) })
	return choices
}

// domainSearch is the search in one set of nodes. It implements Room for its units.
type domainSearch struct {
	room   *planner.Room // with the taken Pods gone
	all    []Pod
	taken  []int // how often each Pod is taken, as units share Pods
	isOver func() bool
	units  []Unit
}

func (s *domainSearch) search() (Choice, bool) {
	chosen, ok := Choose(s.units, s)
	if !ok {
		return Choice{}, false
	}
	choice := Choice{highest: -1 << 32}
	for _, u := range chosen {
		unit := &s.units[u]
		left := len(s.trim(unit))
		choice.violations += min(unit.Violations, left)
		choice.young += oneIf(unit.Young)
		choice.Ends = max(choice.Ends, unit.Ends)
		choice.highest = max(choice.highest, int64(unit.Priority))
	}
	for _, u := range chosen {
		for _, p := range s.units[u].Pods {
			if s.taken[p] > 0 {
				choice.Pods = append(choice.Pods, p)
			}
		}
	}
	slices.Sort(choice.Pods)
	choice.Pods = slices.Compact(choice.Pods)
	for _, p := range choice.Pods {
		choice.lost = times.Sum(choice.lost, s.all[p].Lost)
	}
	return choice, true
}

// trim gives back those Pods of a taken unit that are not in the gang's way, if the unit can go on with them. It
// returns the Pods that the unit loses.
//
// The search takes such a unit as a whole, because it does not know yet where the gang will need room.
func (s *domainSearch) trim(unit *Unit) []int {
	if unit.Spares == nil {
		return unit.Pods
	}
	parts := make([]Unit, len(unit.Pods))
	for i, p := range unit.Pods {
		parts[i] = Unit{Lost: s.all[p].Lost, Pods: []int{p}}
	}
	s.set(unit.Pods, false)
	chosen, ok := Choose(parts, part{s, unit})
	rest := make([]int, len(chosen))
	for i, c := range chosen {
		rest[i] = unit.Pods[c]
	}
	if !ok || !unit.Spares(rest) {
		s.set(rest, false)
		rest = unit.Pods
		s.set(rest, true)
	}
	return rest
}

// part is the Room for the Pods of a unit.
type part struct {
	*domainSearch
	unit *Unit
}

func (p part) Take(pod int, taken bool) {
	p.set(p.unit.Pods[pod:pod+1], taken)
}

// Fits is called only after the gang has fitted with all Pods taken.
func (p part) Fits(bool) bool {
	return p.domainSearch.Fits(true)
}

func (s *domainSearch) Take(unit int, taken bool) {
	s.set(s.units[unit].Pods, taken)
}

func (s *domainSearch) Fits(spares bool) bool {
	return s.room.Fits(!spares || !s.isOver())
}

// set takes Pods, or gives them back.
func (s *domainSearch) set(pods []int, taken bool) {
	for _, p := range pods {
		if taken {
			s.taken[p]++
		}
		if s.taken[p] == 1 {
			sign := int64(-1)
			if taken {
				sign = 1
			}
			s.room.Change(s.all[p].Node, s.all[p].Request, sign)
		}
		if !taken {
			s.taken[p]--
		}
	}
}

// leaveAll gives back all Pods.
func (s *domainSearch) leaveAll() {
	for _, unit := range s.units {
		for _, p := range unit.Pods {
			for s.taken[p] > 0 {
				s.set([]int{p}, false)
			}
		}
	}
}
