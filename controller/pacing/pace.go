// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

// Pace is what is remembered of the times of one Framework. The zero Pace is that
// of a Framework that was never seen before.
type Pace struct {
	Writes Writes
	Syncs  Syncs
	// Parallel is how many requests are under way at the same time, 0 if that is
	// not yet known.
	Parallel int
}
