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
	// Terminating is when each object was first seen being deleted. Missing is when each object that should exist was
	// first missing from the caches. Looks is when each object that the caches lack was last read from the API server.
	Terminating, Missing, Looks Sightings[types.UID]
	// Parallel is how many requests may be under way at the same time; 0 if that is not known yet.
	Parallel int
}
