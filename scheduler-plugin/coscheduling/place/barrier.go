// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// bar is the barrier that a starving gang is to have from now on, nil for none.
func (s *seeker) bar(ctx context.Context) (*room.Barrier, error) {
	before, _ := s.cluster.Own.(*room.Barrier)
	if before != nil {
		seen, verdict := before.Look(s.cluster.Snapshot, s.cluster.Now())
		switch verdict {
		case room.GiveUp:
			return nil, nil
		case room.Stay:
			return seen, nil
		}
		before = seen
	}
	found, err := s.findSpace(ctx, ending(), true)
	if err != nil || found == nil {
		return nil, err
	}
	gang := room.Gang{Rank: s.gang.Rank, UID: s.gang.Group.UID}
	if before != nil {
		return before.MovedTo(gang, found.places, found.awaited), nil
	}
	return room.NewBarrier(gang, found.places, found.awaited, s.gang.StarvationAfter, s.cluster.Now()), nil
}
