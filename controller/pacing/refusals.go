// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"maps"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// Refusals holds the causes for which requests about one owner fail at present. A request with such a cause waits until
// the cause is due. Then one request is tried for all that wait; if it succeeds, the others may follow. The zero
// Refusals is empty.
type Refusals[Cause comparable] struct {
	byCause map[Cause]*refusal
	// failed counts the failed tries in a row, whatever their causes. tried is when the last try was.
	failed int
	tried  time.Time
}

// refusal is one cause that requests fail for.
type refusal struct {
	// failures in a row, the last of them at tried.
	failures int
	tried    time.Time
	// due is when the next request may try.
	due time.Time
}

// Draw returns a number drawn evenly from least to most, both inclusive.
type Draw func(least, most int64) int64

// Refused records that a request has failed. pause is how long the API server asks the client to wait; 0 if it does not
// ask.
func (r *Refusals[Cause]) Refused(cause Cause, now time.Time, pause time.Duration, draw Draw) {
	if r.byCause == nil {
		r.byCause = map[Cause]*refusal{}
	}
	known := r.byCause[cause]
	switch {
	case known == nil:
		known = &refusal{}
		r.byCause[cause] = known
	case now.Before(known.due):
		return // It was under way beside the one that has counted.
	default:
		r.failed++
	}
	known.failures++
	known.tried = now
	known.due = now.Add(max(Backoff(known.failures, draw), min(pause, MaxBackoff)))
	r.tried = now
}

// Granted records that a request has succeeded. A cause is what failing requests have in common, such as a role with
// refused Pods. If requests with this cause failed before, the cause is forgotten, and requests with all other causes
// are tried again soon: the obstacle that is gone may have blocked them, too.
func (r *Refusals[Cause]) Granted(cause Cause) {
	if r.byCause[cause] == nil {
		return
	}
	delete(r.byCause, cause)
	r.failed = 0
	for _, other := range r.byCause {
		if soon := other.tried.Add(soonAfterGrant); soon.Before(other.due) {
			other.due = soon
		}
	}
}

// Refuses reports whether requests of a cause failed last.
func (r *Refusals[Cause]) Refuses(cause Cause) bool { return r.byCause[cause] != nil }

// Due returns when a request of a failed cause may be tried again. Zero means at once.
func (r *Refusals[Cause]) Due(cause Cause) time.Time {
	known := r.byCause[cause]
	if known == nil {
		return time.Time{}
	}
	return times.Later(known.due, r.tried.Add(min(doubled(MinBackoff, r.failed), maxTryDistance)))
}

// DueAlone is Due for a request on which everything else of the owner waits, such as a write of the status. How long
// such a request waits depends on the failures in a row of its own cause; failures of other causes do not add to that.
func (r *Refusals[Cause]) DueAlone(cause Cause) time.Time {
	known := r.byCause[cause]
	if known == nil {
		return time.Time{}
	}
	return times.Later(known.due, r.tried.Add(min(doubled(MinBackoff, min(r.failed, known.failures)), maxTryDistance)))
}

// Tried returns when a request of a cause was last tried; zero if the cause does not fail.
func (r *Refusals[Cause]) Tried(cause Cause) time.Time {
	if known := r.byCause[cause]; known != nil {
		return known.tried
	}
	return time.Time{}
}

// Failing reports whether the last try, of any cause, has failed. After a try that succeeded, the other causes may be
// gone too.
func (r *Refusals[Cause]) Failing() bool { return r.failed > 0 }

// None reports whether no cause is refused.
func (r *Refusals[Cause]) None() bool { return len(r.byCause) == 0 }

// Keep forgets the causes that are not to be kept.
func (r *Refusals[Cause]) Keep(keep func(Cause) bool) {
	maps.DeleteFunc(r.byCause, func(cause Cause, _ *refusal) bool { return !keep(cause) })
	if len(r.byCause) == 0 {
		r.failed = 0
	}
}

// Backoff returns the delay after a number of failures in a row.
func Backoff(failures int, draw Draw) time.Duration {
	delay := min(doubled(MinBackoff, failures-1), MaxBackoff)
	return time.Duration(draw(int64(delay*4/5), int64(delay)))
}

// doubled is span · 2^times, or more than any bound here.
func doubled(span time.Duration, times int) time.Duration {
	const most = 20
	return span << max(0, min(times, most))
}
