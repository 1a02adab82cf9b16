// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"math"
	"testing"
	"time"
)

func TestSeconds(t *testing.T) {
	longest := math.MaxInt64 / time.Second * time.Second
	tests := map[string]struct {
		seconds int64
		want    time.Duration
	}{
		"none":               {0, 0},
		"some":               {90, 90 * time.Second},
		"fewer than none":    {-1, -time.Second},
		"the largest number": {math.MaxInt64, longest},
		"the least number":   {math.MinInt64, -longest},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Seconds(tc.seconds); got != tc.want {
				t.Errorf("Seconds(%d): got %v, want %v", tc.seconds, got, tc.want)
			}
		})
	}
}
