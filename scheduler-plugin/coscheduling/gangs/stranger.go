// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// A stranger is a Pod that names a PodGroup and is no member of it; see
// podgroup.IsMember. It counts for nothing and is not placed.
//
// It is not scheduled as an ordinary Pod either, for what is seen may be old:
// PodGroups and Pods come by watches of their own. When the PodGroup of a retried
// attempt is seen later than its Pods, they look like strangers in the group of
// the attempt before, and placing them one by one would break the gang. So a
// stranger waits, and is told why.

func (m *member) isStranger() bool {
	return !m.strangerSince.IsZero()
}

// waitsInVain says whether a Pod would wait for its place if it were no stranger.
func (m *member) waitsInVain(serves func(schedulerName string) bool) bool {
	if !m.isStranger() {
		return false
	}
	asMember := *m
	asMember.strangerSince = time.Time{}
	return asMember.state(serves) == memberWaiting
}

// ownerOf is the UID of a group's owner, empty if there is none.
func ownerOf(group *dialect.Group) types.UID {
	if group == nil || group.Owner == nil {
		return ""
	}
	return group.Owner.UID
}
