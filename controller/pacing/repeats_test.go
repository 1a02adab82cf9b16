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
	now = now.Add(Lasting)
	repeats.Repeated("a", now)
	if wait := repeats.Due("a").Sub(now); wait != MinBackoff {
		t.Errorf("after a write that has lasted, the next waits %v, want %v", wait, MinBackoff)
	}
	repeats.Forget(now.Add(Lasting - 1))
	if repeats.None() {
		t.Error("a row is forgotten that goes on")
	}
	repeats.Forget(now.Add(Lasting))
	if !repeats.None() {
		t.Error("a row is remembered that has ended")
	}
	repeats.Repeated("a", now)
	repeats.Changed("a")
	if due := repeats.Due("a"); !due.IsZero() || !repeats.None() {
		t.Errorf("another object is due at %v, want at once", due)
	}
}
