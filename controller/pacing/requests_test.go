// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import (
	"testing"
	"time"
)

func TestPaceFollowsWhatTheAPIServerTakes(t *testing.T) {
	tests := map[string]struct {
		taken int
		in    time.Duration
		want  int
	}{
		"in no time":      {10, 0, 64},
		"a fast server":   {100, 50 * time.Millisecond, 64},
		"a busy server":   {40, 100 * time.Millisecond, 20},
		"a slow server":   {10, time.Second, 4},
		"hardly anything": {1, time.Minute, 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Parallel(tc.taken, tc.in, 64); got != tc.want {
				t.Errorf("%d taken in %v make a pace of %d, want %d", tc.taken, tc.in, got, tc.want)
			}
		})
	}
}

func TestSyncsOfANamespaceShareItsRequests(t *testing.T) {
	for name, tc := range map[string]struct{ wanted, flights, want int }{
		"alone":                         {64, 1, 64},
		"beside three":                  {64, 4, 64},
		"beside four":                   {64, 5, 51},
		"in a full namespace":           {64, 32, 8},
		"one that wants little":         {3, 32, 3},
		"one that wants too much":       {1000, 1, 256},
		"in more than there should be":  {64, 1000, 1},
		"before it counts":              {64, 0, 64},
		"one that wants nothing at all": {0, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Share(tc.wanted, tc.flights); got != tc.want {
				t.Errorf("%d of %d requests, want %d", got, tc.wanted, tc.want)
			}
		})
	}
}
