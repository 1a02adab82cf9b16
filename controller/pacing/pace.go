// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "k8s.io/apimachinery/pkg/types"

// Pace holds the remembered times of one owner. The zero Pace belongs to an owner that was never seen before. Cause is
// the type of the reasons for which a request may fail.
type Pace[Cause comparable] struct {
	Writes   Writes
	Syncs    Syncs
	Refusals Refusals[Cause]
	Repeats  Repeats[Cause]
	// Terminating is when objects were first seen to be deleted, Missing when they were first missing from the caches
	// although they should be there, and Looks when the controller last looked for objects that the caches don't show.
	Terminating, Missing, Looks Sightings[types.UID]
	// Parallel is how many requests are under way at the same time, 0 if that is
	// not yet known.
	Parallel int
}
