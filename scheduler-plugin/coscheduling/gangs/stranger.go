// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// A stranger is a Pod that names a PodGroup without being a member; see podgroup.IsMember. A stranger counts for
// nothing and is not placed.
//
// A stranger is not scheduled as an ordinary Pod either, because the scheduler's knowledge may be old: PodGroups and
// Pods come by separate watches. If the PodGroup of a retried attempt arrives later than its Pods, the Pods look like
// strangers in the group of the earlier attempt, and placing them one by one would break the gang. So a stranger waits,
// and its condition says why.

func (m *member) isStranger() bool {
	return !m.strangerSince.IsZero()
}

// waitsInVain reports whether a stranger would wait for a place as a member.
func (m *member) waitsInVain(serves func(schedulerName string) bool) bool {
	if !m.isStranger() {
		return false
	}
	asMember := *m
	asMember.strangerSince = time.Time{}
	return asMember.state(serves) == memberWaiting
}

// ownerOf returns the UID of a group's owner, "" if none.
func ownerOf(group *dialect.Group) types.UID {
	if group == nil || group.Owner == nil {
		return ""
	}
	return group.Owner.UID
}
