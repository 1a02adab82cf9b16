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
	// inCycle: being planned. Exits: Refused, RefuseAlike, Placed, Leave.
	inCycle
	// refused: the gang found no place. The state ends by an event that may help, at a set time, or with Leave.
	refused
)

// gang is what the queue knows of a gang. It is kept while the gang is not in the queue, because the back-off goes on.
type gang struct {
	rank  Rank
	lacks bool // lacks the gang's minimum
	state state
	// woken reports that the gang is to be ready after its cycle.
	woken bool
	// refusal is the gang's last refusal, nil if the gang got a place in its last cycle.
	refusal *Refusal
	// wasFirst reports that the gang had the right to a reservation in its last cycle, or is ready now because it has got the right.
	wasFirst bool
	// in is the shape with which the refused gang waits. tries is the shape on behalf of which the gang is planned
	// next; nil for none.
	in, tries *shape
	// runs is how long the gang runs, 0 if unknown.
	runs time.Duration

	// since is when the gang began to wait. It is set in the first cycle after the gang's minimum was last bound, and
	// zero before that cycle.
	since time.Time
	// failures counts the refusals in a row in which the gang had no more room than before. room is the Room of the
	// last refusal.
	failures, room int
	// alike counts, for the same time as failures, the refusals for which the gang was not planned itself: a gang of
	// the same shape had been refused.
	alike int
	// notBefore is the end of the back-off. early is when the gang may have one cycle during the back-off. initial is
	// the length of the shortest back-off.
	notBefore, early time.Time
	initial          time.Duration
	// unbound counts the placements in a row with a member that could not be bound. unboundUntil is the end of the
	// back-off after such placements.
	unbound      int
	unboundUntil time.Time
	// slow reports that the gang's last cycle took long and found no place. overdue reports that this cycle was given
	// up.
	slow, overdue bool
	hadTurn       bool
	// dueSince is when the gang became due. The time counts only while the gang is in Queue.due.
	dueSince time.Time

	// again is when a refused gang becomes ready even if no event comes; zero for never.
	again time.Time
	// helpless is until when the gang has no right to a reservation.
	helpless time.Time

	// timer is when tick must look at the gang again.
	timer time.Time
	slots [slots]int
}

// isHopeful reports whether the gang may have a reservation. The gang must lack its minimum, be refused or in its
// cycle, and not have lost its right. `at` is when the answer changes even if nothing happens; zero for never.
func (g *gang) isHopeful(now time.Time) (hopeful bool, at time.Time) {
	switch {
	case g.state == out || !g.lacks || g.refusal == nil && g.state != inCycle:
		return false, time.Time{}
	case g.helpless.After(now):
		return false, g.helpless
	}
	return true, time.Time{}
}

// backOff returns the back-off after a number of failures in a row: `initial` after the first, then twice as long with
// each further one, and never more than `longest`.
func backOff(failures int, initial, longest time.Duration) time.Duration {
	d := initial
	for i := 1; i < failures && 0 < d && d < longest; i++ {
		d *= 2
	}
	return min(d, longest)
}
