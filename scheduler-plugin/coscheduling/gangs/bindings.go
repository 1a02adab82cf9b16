// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import "time"

// A gang whose members could not be bound has its place and can't have it: a webhook
// refuses the bindings, a volume is not to be had. It backs off, as one without a
// place does, but by a count of its own, because each placement is a success of the
// gang cycle before it. Nothing shortens this back-off: room is not what the gang lacks.

// bindings are what has come of a gang's placements.
type bindings struct {
	// placement is the number of the last placement, and failed that of the last one
	// of which a member could not be bound.
	placement, failed int
	// message is that of the last failure, empty if the members were bound since.
	message string
	// refused counts the placements in a row whose bindings were refused for good, and refusal is the number of the last
	// of them. Then the gang preempts nobody for the pause, which ends at a time.
	refused, refusal int
	pause            time.Duration
	pauseEnds        time.Time
}

// A gang whose bindings are refused for good preempts others for nothing: they come again, and it has them preempted
// again. So after refusalsAllowed such placements in a row it preempts nobody for firstPause. If it is refused again after
// a pause, the next one is twice as long, up to longestPause.
const (
	refusalsAllowed = 2
	firstPause      = 5 * time.Minute
	longestPause    = time.Hour
)

// begin begins a placement, and returns its number.
func (b *bindings) begin() int {
	b.placement++
	return b.placement
}

// fail notes that a member of a placement could not be bound. The members of one placement
// that fail are one failure: it says whether this is the first of them.
func (b *bindings) fail(placement int, message string) (first bool) {
	if placement <= b.failed {
		return false
	}
	b.failed, b.message = placement, message
	return true
}

// lastFailed says whether a member of the last placement could not be bound.
func (b *bindings) lastFailed() bool {
	return b.failed == b.placement
}

// forget forgets what has come of the placements so far. The failures that are still to come
// of them are nobody's.
func (b *bindings) forget() {
	b.failed, b.message = b.placement, ""
	b.pardon()
}

// refuse notes that the binding of a member of a placement was refused for good.
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

// pardon forgets the bindings that were refused: one has succeeded, or they may be accepted now.
func (b *bindings) pardon() {
	b.refused, b.refusal, b.pause, b.pauseEnds = 0, b.placement, 0, time.Time{}
}
