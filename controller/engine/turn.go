// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

// turn is a sync on a worker, which goes on to other owners after pacing.Patience. The sync goes on too: a sync is in
// flight until its requests are answered, and until then there is no other of the same owner.
type turn struct {
	begun time.Time
	// requests is roughly how many requests the sync has begun: pages of lists, retries of
	// writes and second GETs are left out.
	requests int
	// inFlight is how many syncs of the namespace are in flight.
	inFlight func() int
}
