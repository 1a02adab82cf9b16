// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"sort"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// shadow is the cluster after the first Pods of a pool have ended. It finds, by packing, the shadow time of EASY
// backfill: the earliest end of running work at which the gang fits (Lifka 1995).
type shadow struct {
	*pool
	// world is without the first gone Pods of soon.
	world *planner.World
	gone  int
	// gangs are the ways to pack the gang: only the members that its minima need, or all of them. sets are the sets of
	// nodes that may hold the gang.
	gangs []*planner.Gang
	sets  [][]int
}

// newShadow returns the cluster without the Pods of a pool that are leaving.
func newShadow(found *survey, pool *pool) *shadow {
	leaving := *pool
	leaving.infos = pool.leaving
	least := *found.gang
	least.LeastOnly = true
	world := found.world.Clone()
	for _, pod := range leaving.requests(found.classes, world) {
		for r, request := range pod.Request {
			world.Nodes[pod.Node].Free[r] += request
		}
	}
	return &shadow{pool: pool, world: world, gangs: []*planner.Gang{&least, found.gang},
		sets: planner.Candidates(world, found.gang)}
}

// shortest returns how many Pods have to end until the gang fits, the earliest end first. It returns false if the gang
// never fits.
func (s *shadow) shortest() (int, bool) {
	fits := func(n int) bool {
		s.advance(n)
		return s.fits()
	}
	low, high := 0, min(soonest, len(s.soon))
	for !fits(high) {
		if high == len(s.soon) {
			return high, false
		}
		low, high = high+1, min(2*high, len(s.soon))
	}
	return low + sort.Search(high-low, func(i int) bool { return fits(low + i) }), true
}

// advance has exactly the first n Pods be gone.
func (s *shadow) advance(n int) {
	n = min(n, len(s.soon))
	sign, from, to := int64(1), s.gone, n
	if n < s.gone {
		sign, from, to = -1, n, s.gone
	}
	for _, one := range s.soon[from:to] {
		pod := &s.seen[one.pod]
		free := s.world.Nodes[pod.node].Free
		for r, amount := range pod.request {
			free[r] += sign * amount
		}
	}
	s.gone = n
}

// fits reports whether the gang fits now.
func (s *shadow) fits() bool {
	return slices.ContainsFunc(s.gangs, func(gang *planner.Gang) bool {
		return slices.ContainsFunc(s.sets, func(nodes []int) bool { return planner.FitsOn(s.world, gang, nodes) })
	})
}

// holds reports whether a node has room for any member now. Pods on other nodes need not end.
func (s *shadow) holds(node int) bool { return planner.Holds(s.world, s.gangs[0], node) }
