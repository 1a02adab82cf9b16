// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package forecast computes when waiting gangs will start, given the queue and the ends of running work, which the
// package takes for true. The package is pure, and looks only at amounts of resources, eligible nodes and domains.
//
// There are two list schedules. In InOrder no gang starts before a gang ahead. In Backfilled a gang behind may start
// earlier if that does not delay the first gang that does not fit. This is EASY backfill (Lifka, "The ANL/IBM SP
// Scheduling System", 1995), and what the scheduler does.
package forecast

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Never is the time until something that does not happen, or that happens at an unknown time.
const Never = time.Duration(math.MaxInt64)

// Work is running work, which takes room on nodes until it ends.
type Work struct {
	// Ends is the time until the work ends, Never if unknown.
	Ends time.Duration
	// Takes is what the work takes of nodes.
	Takes []Take
}

// Take is an amount of the World's resources on a node.
type Take struct {
	Node   int
	Amount []int64
}

// Gang is a waiting gang.
type Gang struct {
	// Need is what the gang needs to start. Gangs with the same need may share one Need.
	Need *planner.Gang
	// Domains has, for each node, the node's domain at each level of Need. It is nil if Need has no levels.
	Domains [][]string
	// Runs is how long the gang runs, Never if unknown.
	Runs time.Duration
}

// Start is when a gang starts.
type Start struct {
	// In is the time until the gang starts, Never if unknown.
	In time.Duration
	// Nodes are the nodes on which the gang starts.
	Nodes []int
}

// InOrder returns when gangs start if no gang overtakes another. gangs are in the order of the queue, and `works` is
// the running work. Once isOver returns true, the remaining starts are unknown.
func InOrder(world *planner.World, works []Work, gangs []Gang, isOver func() bool) []Start {
	s := newSchedule(world, works, isOver)
	starts := unknown(len(gangs))
	for i := range gangs {
		at, nodes, ok := s.earliest(&gangs[i])
		if !ok {
			break
		}
		s.endUntil(at)
		s.begin(&gangs[i], nodes)
		starts[i] = startOf(at, nodes)
	}
	return starts
}

// Backfilled returns when gangs start if a gang may overtake others as long as the first gang that does not fit starts
// no later. gangs are in the order of the queue, and `works` is the running work. Once isOver returns true, the
// remaining starts are unknown.
func Backfilled(world *planner.World, works []Work, gangs []Gang, isOver func() bool) []Start {
	s := newSchedule(world, works, isOver)
	starts := unknown(len(gangs))
	waiting := make([]int, len(gangs))
	for i := range waiting {
		waiting[i] = i
	}
	var head *reservation
	// On a large cluster several ends are processed together.
	step := 1 + len(s.ends)/steps
	for len(waiting) > 0 && !isOver() {
		if head, waiting = s.startAll(gangs, waiting, starts, head); len(s.ends) == 0 {
			break
		}
		s.endUntil(s.ends[min(step, len(s.ends))-1].at)
	}
	return starts
}

// steps is roughly how many points in time Backfilled computes at most. If more Pods than that are to end, it handles
// several ends in one step.
const steps = 256

func unknown(n int) []Start {
	starts := make([]Start, n)
	for i := range starts {
		starts[i].In = Never
	}
	return starts
}

func startOf(at time.Duration, takes []Take) Start {
	start := Start{In: at}
	for _, take := range takes {
		start.Nodes = append(start.Nodes, take.Node)
	}
	slices.Sort(start.Nodes)
	start.Nodes = slices.Compact(start.Nodes)
	return start
}

// schedule is the world at a moment.
type schedule struct {
	now   time.Duration
	world *planner.World
	all   []int // nodes
	// sum is what is free of each resource, without nodes that are overcommitted.
	sum []int64
	// ends are the ends of running work that ends, the earliest first.
	ends   []end
	isOver func() bool
}

type end struct {
	at    time.Duration
	takes []Take
}

func newSchedule(world *planner.World, works []Work, isOver func() bool) *schedule {
	s := &schedule{world: world.Clone(), sum: make([]int64, len(world.Resources)), isOver: isOver}
	for n := range s.world.Nodes {
		s.all = append(s.all, n)
		for r, free := range world.Nodes[n].Free {
			s.sum[r] += max(0, free)
		}
	}
	for _, work := range works {
		if work.Ends != Never {
			s.ends = append(s.ends, end{max(0, work.Ends), work.Takes})
		}
	}
	slices.SortStableFunc(s.ends, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	return s
}

// change gives room back to nodes, or takes room if sign is -1.
func (s *schedule) change(takes []Take, sign int64) {
	for _, take := range takes {
		free := s.world.Nodes[take.Node].Free
		for r, amount := range take.Amount {
			s.sum[r] -= max(0, free[r])
			free[r] += sign * amount
			s.sum[r] += max(0, free[r])
		}
	}
}

// endUntil ends all work that ends no later than `at`, and moves the schedule to that time.
func (s *schedule) endUntil(at time.Duration) {
	s.now = max(s.now, at)
	n := 0
	for ; n < len(s.ends) && s.ends[n].at <= s.now; n++ {
		s.change(s.ends[n].takes, 1)
	}
	s.ends = s.ends[n:]
}

// begin starts a gang on nodes.
func (s *schedule) begin(gang *Gang, takes []Take) {
	s.change(takes, -1)
	ends := end{times.Sum(s.now, gang.Runs), takes}
	if ends.at == Never {
		return
	}
	at, _ := slices.BinarySearchFunc(s.ends, ends.at, func(e end, at time.Duration) int { return cmp.Compare(e.at, at) })
	s.ends = slices.Insert(s.ends, at, ends)
}

// earliest returns when there is room for a gang, and where. The result is false if there is never room, or if the time
// for computing is over.
func (s *schedule) earliest(gang *Gang) (time.Duration, []Take, bool) {
	ended := 0
	reach := func(n int) {
		for ; ended < n; ended++ {
			s.change(s.ends[ended].takes, 1)
		}
		for ; ended > n; ended-- {
			s.change(s.ends[ended-1].takes, -1)
		}
	}
	defer reach(0)
	fits := func(n int) bool {
		reach(n)
		return s.fits(s.world, s.sum, gang)
	}
	// There is no room after the first low ends, and there is room after the first high ends.
	low, high := -1, 0
	for !fits(high) {
		if high == len(s.ends) || s.isOver() {
			return 0, nil, false
		}
		low, high = high, min(len(s.ends), 2*high+1)
	}
	for high-low > 1 {
		if middle := (low + high) / 2; fits(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	reach(high)
	takes, ok := s.place(s.world, gang)
	at := s.now
	if high > 0 {
		at = s.ends[high-1].at
	}
	return at, takes, ok
}

// fits reports whether a world has room for a gang. sum is how much of each resource is free on all nodes together.
func (s *schedule) fits(world *planner.World, sum []int64, gang *Gang) bool {
	for r := range sum {
		if atLeast(gang.Need, r) > sum[r] {
			return false
		}
	}
	if len(gang.Need.Levels) == 0 && len(gang.Need.Classes) == 1 {
		return planner.FitsOn(world, gang.Need, s.all)
	}
	room := planner.NewRoom(world, gang.Need)
	for _, nodes := range planner.Candidates(gang.within(world), gang.Need) {
		if room.On(nodes); room.Fits(true) {
			return true
		}
	}
	return false
}

// atLeast returns a lower bound of how much of a resource a gang takes: its minimum times the request of a member. It
// returns 0, which is always a lower bound, if the members differ (several planner.Classes).
func atLeast(need *planner.Gang, resource int) int64 {
	if len(need.Classes) != 1 {
		return 0
	}
	return int64(need.Min) * need.Classes[0].Request[resource]
}

// within returns a world with the domains that count for a gang.
func (g *Gang) within(world *planner.World) *planner.World {
	if g.Domains == nil {
		return world
	}
	own := &planner.World{Resources: world.Resources, Nodes: slices.Clone(world.Nodes)}
	for n := range own.Nodes {
		own.Nodes[n].Domains = g.Domains[n]
	}
	return own
}

// place returns what a gang takes on which nodes, false if the gang does not fit.
func (s *schedule) place(world *planner.World, gang *Gang) ([]Take, bool) {
	for plan := range planner.Plans(gang.within(world), gang.Need) {
		var takes []Take
		for _, a := range plan.Assignments {
			amount := make([]int64, len(world.Resources))
			for r, request := range gang.Need.Classes[a.Class].Request {
				amount[r] = int64(a.Count) * request
			}
			takes = append(takes, Take{a.Node, amount})
		}
		return takes, true
	}
	return nil, false
}

// reservation is the reservation of the first gang that does not fit.
type reservation struct {
	gang int
	// at is when the gang gets its room, Never if unknown. then is the world at that time, with the gang; nil if the time
	// is unknown.
	at   time.Duration
	then *schedule
}

// reserve returns the reservation of a gang.
func (s *schedule) reserve(gangs []Gang, of int) *reservation {
	at, takes, ok := s.earliest(&gangs[of])
	if !ok {
		return &reservation{gang: of, at: Never}
	}
	then := &schedule{now: s.now, world: s.world.Clone(), sum: slices.Clone(s.sum), ends: s.ends}
	then.endUntil(at)
	then.change(takes, -1)
	return &reservation{gang: of, at: at, then: then}
}

// refusal is what gangs that did not fit at a moment have in common.
type refusal struct {
	need     *planner.Gang
	outlasts bool
}

// startAll starts the waiting gangs that may start now. It returns the gangs that still wait, and the reservation of
// the first one of these.
func (s *schedule) startAll(gangs []Gang, waiting []int, starts []Start, head *reservation) (*reservation, []int) {
	refused := make(map[refusal]bool)
	var beside *planner.World // room for gangs that run beyond the reservation's start
	var still []int
	for at, i := range waiting {
		if s.isOver() {
			return head, append(still, waiting[at:]...)
		}
		gang := &gangs[i]
		as := refusal{need: gang.Need}
		if head != nil && head.gang != i && head.then != nil {
			as.outlasts = times.Sum(s.now, gang.Runs) > head.at
		}
		world := s.world
		if as.outlasts && !refused[as] {
			if beside == nil {
				beside = both(s.world, head.then.world)
			}
			world = beside
		}
		if !refused[as] && s.fits(world, s.sum, gang) {
			if takes, ok := s.place(world, gang); ok {
				s.begin(gang, takes)
				starts[i], beside = startOf(s.now, takes), nil
				if as.outlasts {
					head.then.change(takes, -1)
				}
				if head != nil && head.gang == i {
					head = nil
					clear(refused)
				}
				continue
			}
		}
		refused[as] = true
		still = append(still, i)
		if head == nil {
			head, beside = s.reserve(gangs, i), nil
			clear(refused)
			if head.then == nil {
				head = nil // unknown start: this gang delays no other
				refused[as] = true
			}
		}
	}
	return head, still
}

// both returns a world with what is free in both of two worlds.
func both(a, b *planner.World) *planner.World {
	least := a.Clone()
	for n := range least.Nodes {
		for r, free := range b.Nodes[n].Free {
			least.Nodes[n].Free[r] = min(least.Nodes[n].Free[r], free)
		}
	}
	return least
}
