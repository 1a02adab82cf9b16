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

// Lifetime is until when room is kept for a gang whose members were placed at these times. It ends
// when no member was placed for patience, and when the first one was placed maxAge times longest
// ago. A member that is placed after the end does not begin it anew, so a scheduler that has just
// started finds the end that the one before it has found. A time that is still to come counts as
// now. Last is the end in any case. Both are zero if there are no members.
func Lifetime(placed []time.Time, patience, longest time.Duration, now time.Time) (end, last time.Time) {
	if len(placed) == 0 {
		return time.Time{}, time.Time{}
	}
	times := slices.Clone(placed)
	for i, at := range times {
		if at.After(now) {
			times[i] = now
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	last = times[0].Add(maxAge * longest)
	end = times[0].Add(patience)
	for _, at := range times[1:] {
		if at.After(end) {
			break
		}
		end = at.Add(patience)
	}
	if end.After(last) {
		end = last
	}
	return end, last
}

// Patience is how long room is kept without a member that comes: what the group asks for, which
// only shortens what the configuration says.
func Patience(asked, longest time.Duration) time.Duration {
	if asked > 0 {
		return min(asked, longest)
	}
	return longest
}
