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
