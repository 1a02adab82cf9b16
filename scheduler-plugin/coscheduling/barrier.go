// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// bar keeps room back for the cycle's gang, which starves. It returns when to look whether
// that is of use, zero if it keeps none.
func (c *cycle) bar(ctx context.Context) (time.Time, error) {
	now := c.tracker.now()
	before, _ := c.room.Of(c.view.key).(*room.Barrier)
	if before != nil {
		seen, verdict := before.Look(c.snapshot, now)
		if seen != before {
			c.keep(seen)
		}
		switch verdict {
		case room.GiveUp:
			return time.Time{}, nil
		case room.Stay:
			return seen.PatientUntil(), nil
		}
		before = seen
	}
	found, err := c.findSpace(ctx, ending(), true)
	if err != nil || found == nil {
		return time.Time{}, err
	}
	gang := room.Gang{Rank: c.view.rank, UID: c.view.group.UID}
	barrier := room.NewBarrier(gang, found.places, found.awaited, c.view.starvationAfter, now)
	if before != nil {
		barrier = before.MovedTo(gang, found.places, found.awaited)
	}
	c.keep(barrier)
	return barrier.PatientUntil(), nil
}
