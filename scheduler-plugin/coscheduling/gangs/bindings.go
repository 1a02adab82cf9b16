// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

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
}

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
}
