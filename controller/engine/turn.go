// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// turn is a sync on a worker. After pacing.Patience the worker goes on to other owners, while the sync continues. A
// sync ends only when all its requests are answered; until then the owner has no other sync.
type turn struct {
	begun time.Time
	// requests is roughly how many requests the sync has begun: pages of lists, retries of
	// writes and second GETs are left out.
	requests int
	// inFlight is how many syncs of the namespace are in flight.
	inFlight func() int
}
