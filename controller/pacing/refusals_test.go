// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"
)

// latest draws the longest delay, and soonest the shortest.
func latest(_, most int64) int64   { return most }
func soonest(least, _ int64) int64 { return least }

// tries lets each cause be refused as soon as it is due, until an end, and returns
// when which cause was tried.
func tries(r *Refusals[string], begin, end time.Time, draw Draw, causes ...string) []time.Time {
	for _, cause := range causes {
		r.Refused(cause, begin, 0, draw)
	}
	var at []time.Time
	for now := begin; now.Before(end); now = now.Add(10 * time.Millisecond) {
		for _, cause := range causes {
			if !r.Due(cause).After(now) {
				r.Refused(cause, now, 0, draw)
				at = append(at, now)
				break // The others wait for the distance.
			}
		}
	}
	return at
}

func TestASteadyErrorIsTriedTwiceAMinute(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, causes := range map[string][]string{
		"one cause":   {"a"},
		"two causes":  {"a", "b"},
		"many causes": {"a", "b", "c", "d", "e", "f"},
	} {
		t.Run(name, func(t *testing.T) {
			var r Refusals[string]
			at := tries(&r, begin, begin.Add(30*time.Minute), soonest, causes...)
			if len(at) <= 10 {
				t.Fatalf("%d tries in half an hour, want more than 10", len(at))
			}
			steady := begin.Add(10 * time.Minute)
			for i := range at {
				if at[i].After(steady) && i >= 2 && at[i].Sub(at[i-2]) < time.Minute {
					t.Fatalf("tries at %v, %v and %v after the beginning", at[i-2].Sub(begin), at[i-1].Sub(begin), at[i].Sub(begin))
				}
			}
		})
	}
}

func TestRoomIsUsedWithinAMinute(t *testing.T) {
	begin := time.Unix(1000, 0)
	for name, causes := range map[string][]string{"one cause": {"a"}, "two causes": {"a", "b"}} {
		t.Run(name, func(t *testing.T) {
			var r Refusals[string]
			end := begin.Add(30 * time.Minute)
			tries(&r, begin, end, latest, causes...)
			for _, cause := range causes {
				if wait := r.Due(cause).Sub(end); wait > time.Minute {
					t.Errorf("%s is tried in %v", cause, wait)
				}
			}
		})
	}
}

func TestASuccessFreesItsCauseAndHastensOthers(t *testing.T) {
	begin := time.Unix(1000, 0)
	var r Refusals[string]
	end := begin.Add(30 * time.Minute)
	tries(&r, begin, end, latest, "a", "b")
	r.Granted("a")
	if r.Refuses("a") || !r.Refuses("b") {
		t.Fatalf("a is refused: %t, b: %t, want b only", r.Refuses("a"), r.Refuses("b"))
	}
	if wait := r.Due("b").Sub(end); wait > soonAfterGrant {
		t.Errorf("b is tried in %v, want %v at most", wait, soonAfterGrant)
	}
	r.Granted("never refused")
	r.Keep(func(string) bool { return false })
	if !r.None() {
		t.Error("a cause is remembered that was not kept")
	}
}

func TestRequestsUnderWayTogetherCountOnce(t *testing.T) {
	now := time.Unix(1000, 0)
	var r Refusals[string]
	for range 64 {
		r.Refused("a", now, 0, latest)
	}
	if wait := r.Due("a").Sub(now); wait > 2*MinBackoff {
		t.Errorf("after 64 requests at once the next comes in %v, want %v at most", wait, 2*MinBackoff)
	}
}

func TestAServerMayAskForAPause(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, tc := range map[string]struct{ asked, want time.Duration }{
		"of a few seconds": {7 * time.Second, 7 * time.Second},
		"of an hour":       {time.Hour, MaxBackoff},
	} {
		t.Run(name, func(t *testing.T) {
			var r Refusals[string]
			r.Refused("a", now, tc.asked, soonest)
			if wait := r.Due("a").Sub(now); wait != tc.want {
				t.Errorf("the next request comes in %v, want %v", wait, tc.want)
			}
		})
	}
}

func TestBackoffIsNeverWithoutBounds(t *testing.T) {
	for _, failures := range []int{1, 2, 11, 64, 1 << 40} {
		if delay := Backoff(failures, latest); delay < MinBackoff || delay > MaxBackoff {
			t.Errorf("after %d failures the delay is %v", failures, delay)
		}
	}
}
