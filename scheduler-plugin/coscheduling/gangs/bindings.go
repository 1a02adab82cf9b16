// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import "time"

// The members of a gang with a place may fail to be bound: a webhook refuses the bindings, or a volume can't be
// provisioned. The gang then backs off, like a gang without a place, but with a separate count, because each placement
// resets the other count. No event shortens this back-off: the gang does not lack room.

// bindings records the results of a gang's placements.
type bindings struct {
	// placement is the number of the last placement. failed is the number of the last placement with a member that
	// could not be bound.
	placement, failed int
	// message is the message of the last failure. It is "" if the members have been bound since.
	message string
	// refused counts the placements in a row with a binding that was refused for good, that is, by a policy or a
	// webhook. refusal is the number of the last of these placements. After several of them the gang preempts nothing and has
	// no reservation in time until pauseEnds.
	refused, refusal int
	pause            time.Duration
	pauseEnds        time.Time
}

// While its bindings are refused for good, a gang preempts others in vain: controllers recreate the victims, and the
// gang preempts them again. So after refusalsAllowed such placements in a row, the gang does not preempt for
// firstPause. If it is refused again after a pause, the next pause is twice as long, up to longestPause.
const (
	refusalsAllowed = 2
	firstPause      = 5 * time.Minute
	longestPause    = time.Hour
)

// begin starts a placement, and returns its number.
func (b *bindings) begin() int {
	b.placement++
	return b.placement
}

// fail records that a member of a placement could not be bound. All failures of one placement count as one failure;
// first reports whether this is the first of them.
func (b *bindings) fail(placement int, message string) (first bool) {
	if placement <= b.failed {
		return false
	}
	b.failed, b.message = placement, message
	return true
}

// lastFailed reports whether a member of the last placement could not be bound.
func (b *bindings) lastFailed() bool {
	return b.failed == b.placement
}

// forget drops the results of all placements so far. If a member of one of these can't be bound later, that failure
// does not count.
func (b *bindings) forget() {
	b.failed, b.message = b.placement, ""
	b.pardon()
}

// refuse records that the binding of a member was refused for good. placement is the number of the member's placement.
func (b *bindings) refuse(placement int, now time.Time) {
	if placement <= b.refusal {
		return
	}
	b.refusal = placement
	if b.refused++; b.refused < refusalsAllowed || now.Before(b.pauseEnds) {
		return
	}
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	b.pauseEnds = now.Add(b.pause)
}

// pardon drops the refused bindings: one has succeeded, or they may be accepted now.
func (b *bindings) pardon() {
	b.refused, b.refusal, b.pause, b.pauseEnds = 0, b.placement, 0, time.Time{}
}
