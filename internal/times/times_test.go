// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package times

import (
	"math"
	"testing"
	"time"
)

func TestASumIsNeverNegative(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	for _, tc := range []struct{ a, b, want time.Duration }{{1, 2, 3}, {most, 1, most}, {1, most, most}, {most, most, most}, {most - 1, 1, most}} {
		if got := Sum(tc.a, tc.b); got != tc.want {
			t.Errorf("%v and %v are %v, want %v", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestOfTwoTimes(t *testing.T) {
	never, early, late := time.Time{}, time.Unix(1, 0), time.Unix(2, 0)
	tests := map[string]struct {
		a, b, wantLater, wantSooner time.Time
	}{
		"two that differ":   {early, late, late, early},
		"two that are same": {late, late, late, late},
		"one that is never": {never, late, late, late},
		"both never":        {never, never, never, never},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for _, pair := range [][2]time.Time{{tc.a, tc.b}, {tc.b, tc.a}} {
				if got := Later(pair[0], pair[1]); got != tc.wantLater {
					t.Errorf("the later one is %v, want %v", got, tc.wantLater)
				}
				if got := Sooner(pair[0], pair[1]); got != tc.wantSooner {
					t.Errorf("the sooner one is %v, want %v", got, tc.wantSooner)
				}
			}
		})
	}
}
