// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package times compares times, and adds them up. It is pure.
package times

import (
	"math"
	"time"
)

// Sum returns the sum of two times, neither of which is negative. It is the largest Duration, some 292 years, if the sum
// is larger: the Pods of a large gang may run for longer together.
func Sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Later returns the later of two times. Zero is the earliest.
func Later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Sooner returns the earlier of two times; zero is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
