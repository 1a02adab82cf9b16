// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "time"

// Repeats records writes that another client undoes, by deleting a created object or changing a changed object back.
// The delay before such a write is repeated grows with the number of its repeats, and with the number of such writes.
// The zero Repeats is empty.
type Repeats[Cause comparable] struct {
	byCause map[Cause]repeats
}

// repeats counts the consecutive repeats of one write, and when the last one was.
type repeats struct {
	inARow int
	last   time.Time
}

// Repeated records that a write has succeeded. The write counts as a repeat if the last one of this cause was less than
// Lasting ago.
func (r *Repeats[Cause]) Repeated(cause Cause, now time.Time) {
	if r.byCause == nil {
		r.byCause = map[Cause]repeats{}
	}
	known := r.byCause[cause]
	if now.Sub(known.last) >= r.Lasting() {
		known.inARow = 0
	}
	r.byCause[cause] = repeats{inARow: known.inARow + 1, last: now}
}

// Changed records that a write other than before has succeeded: no row goes on.
func (r *Repeats[Cause]) Changed(cause Cause) { delete(r.byCause, cause) }

// Due returns when a write may be repeated. The zero time means at once.
func (r *Repeats[Cause]) Due(cause Cause) time.Time {
	known, ok := r.byCause[cause]
	if !ok {
		return time.Time{}
	}
	return known.last.Add(min(doubled(MinBackoff, known.inARow-1), r.longest()))
}

// longest returns the longest delay of a repeat, which limits how often all writes together are repeated.
func (r *Repeats[Cause]) longest() time.Duration {
	return max(MaxBackoff, time.Duration(len(r.byCause))*time.Minute/repeatsPerMinute)
}

// Lasting returns how long after a write the next one no longer counts as a repeat. This is longer than the longest
// delay.
func (r *Repeats[Cause]) Lasting() time.Duration { return 2 * r.longest() }

// Forget forgets the rows that have ended: their last write has lasted.
func (r *Repeats[Cause]) Forget(now time.Time) {
	lasting := r.Lasting()
	for cause, known := range r.byCause {
		if now.Sub(known.last) >= lasting {
			delete(r.byCause, cause)
		}
	}
}

// None reports whether no write was repeated.
func (r *Repeats[Cause]) None() bool { return len(r.byCause) == 0 }
