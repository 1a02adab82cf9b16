// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package victims

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"time"
)

// Unit is work that is taken or left as a whole.
type Unit struct {
	// Name breaks ties.
	Name string
	// Violations is how many of its Pods a PodDisruptionBudget protects.
	Violations int
	// Young says that the work has not run for as long as work of its class is to run before it is preempted.
	Young bool
	// Ends is in how long the work ends by itself, where that is waited for: Never if nobody knows. It is 0 for work that is evicted.
	Ends     time.Duration
	Priority int32
	// Lost is how long its Pods have run, added up.
	Lost time.Duration
	// Pods are its Pods, as indexes that mean something to the caller.
	Pods []int
	// Spares says whether the work goes on without some of its Pods, so that just
	// these can be taken. Nil: it goes as a whole only.
	Spares func(pods []int) bool
}

// Never is in how long work ends of which nobody knows when.
const Never = time.Duration(math.MaxInt64)

// Compare is negative if a is to be taken rather than b.
func Compare(a, b *Unit) int {
	return cmp.Or(
		cmp.Compare(a.Violations, b.Violations),
		cmp.Compare(oneIf(a.Young), oneIf(b.Young)),
		cmp.Compare(a.Ends, b.Ends),
		cmp.Compare(a.Priority, b.Priority),
		cmp.Compare(a.Lost, b.Lost),
		cmp.Compare(len(a.Pods), len(b.Pods)),
		cmp.Compare(a.Name, b.Name),
	)
}

// Room is what a gang finds when some units are taken, none of them at first.
type Room interface {
	// Take takes a unit, or gives it back.
	Take(unit int, taken bool)
	// Fits reports whether the gang fits with the units that are taken. If spares is true, the gang has fitted with
	// more of them: Fits may then return false if it would take too long to find out.
	Fits(spares bool) bool
}

// Choose takes units in a room so that the gang fits, none if it fits as things are, and returns them as
// indexes in ascending order. The bool is false if it does not fit whatever is taken.
func Choose(units []Unit, room Room) ([]int, bool) {
	order := make([]int, len(units))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return Compare(&units[a], &units[b]) })

	s := &search{order: order, taken: make([]bool, len(units)), room: room}
	if s.set(0, len(order), true); !room.Fits(false) {
		return nil, false
	}
	prefix := sort.Search(len(order), func(n int) bool {
		s.set(0, n, true)
		s.set(n, len(order), false)
		return room.Fits(false)
	})
	s.set(0, prefix, true)
	s.set(prefix, len(order), false)
	// Without the prefix's last unit the gang does not fit: sort.Search asked.
	s.spareHalves(0, prefix)

	chosen := []int{}
	for i, taken := range s.taken {
		if taken {
			chosen = append(chosen, i)
		}
	}
	return chosen, true
}

// search is a choice in the making.
//
// Invariant: the gang fits with what is taken.
type search struct {
	order []int // units, the cheapest first
	taken []bool
	room  Room
}

// set takes or leaves the units from..to of the order.
func (s *search) set(from, to int, taken bool) {
	for _, i := range s.order[from:to] {
		if s.taken[i] != taken {
			s.taken[i] = taken
			s.room.Take(i, taken)
		}
	}
}

// spare leaves as many of the units from..to as can be left, the dearest first.
func (s *search) spare(from, to int) {
	if from == to {
		return
	}
	if s.set(from, to, false); s.room.Fits(true) {
		return
	}
	s.set(from, to, true)
	s.spareHalves(from, to)
}

// spareHalves is spare for units of which not all can be left.
func (s *search) spareHalves(from, to int) {
	if to-from < 2 {
		return
	}
	middle := (from + to) / 2
	s.spare(middle, to)
	s.spare(from, middle)
}

func oneIf(is bool) int {
	if is {
		return 1
	}
	return 0
}
