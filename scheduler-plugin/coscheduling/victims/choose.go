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

// Unit is work that is taken or spared as a whole.
type Unit struct {
	// Name breaks ties.
	Name string
	// Violations is how many of the unit's Pods a PodDisruptionBudget protects.
	Violations int
	// Young reports that the work has run for less time than its PriorityClass, or the default, sets as the minimum
	// before preemption.
	Young bool
	// Ends is the time until the work ends by itself, if the gang is to wait for that; Never if unknown. 0 if the work
	// is to be evicted.
	Ends     time.Duration
	Priority int32
	// Lost is how long the unit's Pods have run, added up.
	Lost time.Duration
	// Pods are the unit's Pods, as indexes of the caller.
	Pods []int
	// Spares reports whether the work can go on if it loses only the given Pods. If Spares is nil, the unit can only be
	// taken as a whole.
	Spares func(pods []int) bool
}

// Never is the time until work of unknown end ends.
const Never = time.Duration(math.MaxInt64)

// Compare returns a negative number if a is to be taken before b.
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

// Room is the room that a gang has while some units are gone ("taken"). At first no unit is taken.
type Room interface {
	// Take takes a unit, or gives the unit back.
	Take(unit int, taken bool)
	// Fits reports whether the gang fits while the taken units are gone. spares reports that the gang has fitted with
	// more units taken. Fits may then return false if the answer would take too long.
	Fits(spares bool) bool
}

// Choose takes as few units as it can until the gang fits. It returns their indexes in ascending order, none if the
// gang fits without taking any. It returns false if the gang does not even fit with all units taken.
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
	// sort.Search has shown that the gang does not fit without the prefix's last unit.
	s.spareHalves(0, prefix)

	chosen := []int{}
	for i, taken := range s.taken {
		if taken {
			chosen = append(chosen, i)
		}
	}
	return chosen, true
}

// search is a choice in progress.
//
// Invariant: the gang fits with what is taken.
type search struct {
	order []int // units, the cheapest first
	taken []bool
	room  Room
}

// set takes or gives back the units from..to of the order.
func (s *search) set(from, to int, taken bool) {
	for _, i := range s.order[from:to] {
		if s.taken[i] != taken {
			s.taken[i] = taken
			s.room.Take(i, taken)
		}
	}
}

// spare gives back as many of the units from..to as possible, the dearest first.
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

// spareHalves is spare for units that can't all be given back.
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
