// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"
)

func TestAnObjectIsSeenForTheFirstTimeOnce(t *testing.T) {
	first := time.Unix(1000, 0)
	second := first.Add(time.Minute)
	var since, latest Sightings[string]
	for _, now := range []time.Time{first, second} {
		since.First("a", now)
		latest.Last("a", now)
	}
	if got := since.At()["a"]; !got.Equal(first) {
		t.Errorf("it was first seen at %v, want %v", got, first)
	}
	if got := latest.At()["a"]; !got.Equal(second) {
		t.Errorf("it was last seen at %v, want %v", got, second)
	}
	since.First("b", second)
	since.Keep(func(id string) bool { return id == "b" })
	if _, ok := since.At()["a"]; ok || len(since.At()) != 1 {
		t.Errorf("%v are remembered, want b", since.At())
	}
}
