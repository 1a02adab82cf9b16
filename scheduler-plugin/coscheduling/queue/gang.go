// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// state is the state of a gang in the queue.
type state int

const (
	// out: not in the queue. Exits: Enter.
	out state = iota
	// ready: may have a cycle, at once or later. Exits: Begin, Leave.
	ready
	// inCycle: being planned. Exits: Refused, Alike, Placed, Leave.
	inCycle
	// refused: found no place. Exits: an event that may help, a time that has come, Leave.
	refused
)

// gang is what the queue knows of a gang, also while the gang is out of the queue: the back-off goes on.
type gang struct {
	rank  Rank
	lacks bool // lacks the gang's minimum
	state state
	// woken reports that the gang is to be ready after its cycle.
	woken bool
	// refusal is the gang's last refusal, nil if the gang got a place in its last cycle.
	refusal *Refusal
	// in is the shape with which a refused gang waits. tries is the shape for which the gang is tried.
	in, tries *shape

	// since is when the gang began to wait, known from its first cycle after its minimum was last bound; zero before
	// that cycle.
	since time.Time
	// failures counts the refusals in a row without more room. room is the Room of the last of these.
	failures, room int
	// alike counts the refusals since then for which another gang of the shape was planned.
	alike int
	// notBefore is the end of the back-off. early is when the gang may have a cycle during the back-off. initial is the
	// shortest back-off.
	notBefore, early time.Time
	initial          time.Duration
	// unbound counts the placements in a row with a member that could not be bound. unboundUntil is the end of the
	// back-off for these.
	unbound      int
	unboundUntil time.Time
	// slow reports that the gang's last cycle was long and in vain, overdue that this cycle was given up.
	slow, overdue bool
	hadTurn       bool
	// dueSince is when the gang became due. It counts while the gang is in Queue.due.
	dueSince time.Time

	// again is when a refused gang becomes ready even if nothing happens; zero for never.
	again time.Time
	// helpless is until when the gang has no right to a reservation.
	helpless time.Time

	// timer is when tick must look at the gang again.
	timer time.Time
	slots [slots]int
}

// isHopeful reports whether the gang may have a reservation: the gang lacks its minimum, was refused or is in its
// cycle, and has not given up its right. at is when the answer changes if nothing happens; zero for never.
func (g *gang) isHopeful(now time.Time) (hopeful bool, at time.Time) {
	switch {
	case g.state == out || !g.lacks || g.refusal == nil && g.state != inCycle:
		return false, time.Time{}
	case g.helpless.After(now):
		return false, g.helpless
	}
	return true, time.Time{}
}

// backOff returns the back-off after a number of failures in a row: initial, doubled with each further failure, at most
// longest.
func backOff(failures int, initial, longest time.Duration) time.Duration {
	d := initial
	for i := 1; i < failures && 0 < d && d < longest; i++ {
		d *= 2
	}
	return min(d, longest)
}
