// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"
)

func TestAWriteThatIsUndoneIsRepeatedAtGrowingIntervals(t *testing.T) {
	var repeats Repeats[string]
	now := time.Unix(1_000_000, 0)
	if due := repeats.Due("a"); !due.IsZero() {
		t.Errorf("a first write is due at %v, want at once", due)
	}
	made := 0
	for begun := now; now.Sub(begun) < 20*time.Minute; made++ {
		repeats.Repeated("a", now)
		now = repeats.Due("a")
	}
	if made < 20 || made > 40 {
		t.Errorf("a write that is always undone at once was repeated %d times in 20 minutes, want once a minute in the end", made)
	}
	if due := repeats.Due("b"); !due.IsZero() {
		t.Errorf("another write is due at %v, want at once", due)
	}
	now = now.Add(repeats.Lasting())
	repeats.Repeated("a", now)
	if wait := repeats.Due("a").Sub(now); wait != MinBackoff {
		t.Errorf("after a write that has lasted, the next waits %v, want %v", wait, MinBackoff)
	}
	repeats.Forget(now.Add(repeats.Lasting() - 1))
	if repeats.None() {
		t.Error("a row is forgotten that goes on")
	}
	repeats.Forget(now.Add(repeats.Lasting()))
	if !repeats.None() {
		t.Error("a row is remembered that has ended")
	}
	repeats.Repeated("a", now)
	repeats.Changed("a")
	if due := repeats.Due("a"); !due.IsZero() || !repeats.None() {
		t.Errorf("another object is due at %v, want at once", due)
	}
}

// TestManyWritesThatAreUndoneAreRepeatedNoMoreOftenThanAFew: a job of ten thousand Pods that fail at
// once costs others what one of two hundred does. One that is undone alone does not wait longer for
// that.
func TestManyWritesThatAreUndoneAreRepeatedNoMoreOftenThanAFew(t *testing.T) {
	for _, writes := range []int{1, 200, 1000, 10_000} {
		var repeats Repeats[int]
		due := make([]time.Time, writes)
		begun := time.Unix(1_000_000, 0)
		for write := range due {
			due[write] = begun.Add(time.Duration(write) * time.Millisecond)
		}
		made := 0
		for now := begun; now.Sub(begun) < 5*time.Hour; now = now.Add(10 * time.Second) {
			for write, at := range due {
				for ; !at.After(now); at = repeats.Due(write) {
					repeats.Repeated(write, at)
					if now.Sub(begun) >= 4*time.Hour {
						made++
					}
				}
				due[write] = at
			}
			repeats.Forget(now)
		}
		if least, most := min(writes, 150)*60, min(2*writes, 210)*60; made < least || made > most {
			t.Errorf("%d writes that are always undone were repeated %d times in the last hour, want %d to %d", writes, made, least, most)
		}
	}
}
