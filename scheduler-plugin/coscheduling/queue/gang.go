// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// state is where a gang is.
type state int

const (
	// out: it is not in the queue. Exits: Enter.
	out state = iota
	// ready: it may have a cycle, at once or later. Exits: Begin, Leave.
	ready
	// inCycle: it has its cycle. Exits: Refused, Alike, Placed, Leave.
	inCycle
	// refused: it found no place. Exits: something may help, a time has come, Leave.
	refused
)

// gang is what the queue knows of a gang. It is kept while the gang is out of the queue: its
// back-off goes on.
type gang struct {
	rank  Rank
	lacks bool // it lacks its minimum
	state state
	// woken says that the gang was to be ready during its cycle.
	woken bool
	// refusal is what the gang was told last, nil if its last cycle gave it a place.
	refusal *Refusal
	// in is the shape with which it waits while it is refused, and tries the one that waits
	// for the outcome of its cycle.
	in, tries *shape

	// since is when it was first planned since its minimum was last bound; zero before.
	since time.Time
	// failures are the refusals in a row without more room, and room is what the last one had.
	failures, room int
	// alike are the refusals in a row since then for which another gang was planned.
	alike int
	// notBefore is the end of the back-off, and early when the gang may have a cycle in it. Initial
	// is how long the shortest back-off is.
	notBefore, early time.Time
	initial          time.Duration
	// unbound are the placements in a row of which a member could not be bound, and
	// unboundUntil is the end of the back-off for them.
	unbound      int
	unboundUntil time.Time
	// slow says that its last cycle was long and in vain, and overdue that the cycle was given up.
	slow, overdue bool
	hadTurn       bool
	// dueSince is since when it may have its cycle, if it may.
	dueSince time.Time

	// again is when a refused gang is to be ready even if nothing happens; zero for never.
	again time.Time
	// helpless is until when it has no right to be helped.
	helpless time.Time

	// timer is when the gang is to be looked at again.
	timer time.Time
	slots [slots]int
}

// isHopeful says whether the gang may be helped: it is in the queue for its minimum, has found no place, or looks for one now, and has not
// given up its right. At is when this changes by itself; zero for never.
func (g *gang) isHopeful(now time.Time) (hopeful bool, at time.Time) {
	switch {
	case g.state == out || !g.lacks || g.refusal == nil && g.state != inCycle:
		return false, time.Time{}
	case g.helpless.After(now):
		return false, g.helpless
	}
	return true, time.Time{}
}

// backOff is how long a gang waits after some failures in a row: initial, doubled with
// each further one, at most longest.
func backOff(failures int, initial, longest time.Duration) time.Duration {
	d := initial
	for i := 1; i < failures && 0 < d && d < longest; i++ {
		d *= 2
	}
	return min(d, longest)
}
