// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package times compares times. It is pure.
package times

import "time"

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
