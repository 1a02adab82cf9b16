// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package provision

import (
	"slices"
	"time"
)

// maxAge is for how long room is kept for a gang in all, in units of the longest time that it may
// be without a member that comes.
const maxAge = 3

// Life is since when room is kept for a gang, and when it was last of use.
type Life struct {
	// Began is when the first member was placed; zero if none was.
	Began time.Time
	// Came is when the last member was placed that came in time.
	Came time.Time
}

// With is the life when members were placed at these times, among others that have gone since. A member
// is in time that is placed no later than patience after the one before it. One that comes later does not
// begin it anew, so a scheduler that has just started finds the end that the one before it has
// found, but for members that have gone. A time that is still to come counts as now.
func (l Life) With(placed []time.Time, patience time.Duration, now time.Time) Life {
	times := slices.Clone(placed)
	for i, at := range times {
		if at.After(now) {
			times[i] = now
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	for _, at := range times {
		if l.Began.IsZero() || at.Before(l.Began) {
			l.Began = at
		}
		if l.Came.IsZero() || at.After(l.Came) && !at.After(l.Came.Add(patience)) {
			l.Came = at
		}
	}
	return l
}

// Ends is until when room is kept: for patience since the last member that came in time. Last is the end in
// any case: maxAge times longest since the first one. Both are zero if there was none.
func (l Life) Ends(patience, longest time.Duration) (end, last time.Time) {
	if l.Began.IsZero() {
		return time.Time{}, time.Time{}
	}
	last = l.Began.Add(maxAge * longest)
	end = l.Came.Add(patience)
	if end.After(last) {
		end = last
	}
	return end, last
}

// Past is for how long room was kept for a gang whose members have all gone since. The next ones are not to
// have it kept for as long again at once: who replaces them all the time would have it for ever.
type Past struct {
	kept  time.Duration
	ended time.Time
}

// Over is the past of a life that has ended.
func (l Life) Over(ended time.Time, longest time.Duration) Past {
	return Past{kept: min(max(0, ended.Sub(l.Began)), maxAge*longest), ended: ended}
}

// Owes is how much less time room is kept for members that are placed now: a pause as long as the time for
// which it was kept makes up for that.
func (p Past) Owes(now time.Time) time.Duration {
	return max(0, p.kept-now.Sub(p.ended))
}

// After is a life, which begins now, as it is with such a past.
func (l Life) After(past Past) Life {
	l.Began = l.Began.Add(-past.Owes(l.Began))
	return l
}

// Last is until when room is kept in any case for members that are placed now; zero if there is no past
// that matters.
func (p Past) Last(longest time.Duration, now time.Time) time.Time {
	owes := p.Owes(now)
	if owes == 0 {
		return time.Time{}
	}
	return now.Add(maxAge*longest - owes)
}

// Patience is how long room is kept without a member that comes: what the group asks for, which
// only shortens what the configuration says.
func Patience(asked, longest time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longest)
	}
	return longest
}
