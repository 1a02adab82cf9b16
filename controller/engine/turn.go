// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// turn is a sync that runs on a worker. After pacing.Patience the worker goes on to other owners, and the sync
// continues without it. The sync ends when all its requests are answered; until then the owner has no other sync.
type turn struct {
	begun time.Time
	// requests is roughly how many requests the sync has begun: pages of lists, retries of
	// writes and second GETs are left out.
	requests int
	// inFlight is how many syncs of the namespace are in flight.
	inFlight func() int
}
