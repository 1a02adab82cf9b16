// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
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

// judge finds out whether a Pod is a member of its gang, or a stranger. While the
// PodGroup is not seen, that is unknown, and the Pod is taken for a member: nothing
// is placed anyway. The Pod must not be counted meanwhile. The caller holds the
// lock.
func (t *tracker) judge(g *gang, m *member) {
	switch {
	case g.group == nil || podgroup.IsMember(g.group, m.pod):
		m.strangerSince = time.Time{}
	case !m.isStranger():
		m.strangerSince = t.now()
	}
}

// judgeAll judges all Pods of a gang anew if its PodGroup has another owner than
// the one before, and says whether it did. The caller holds the lock.
func (t *tracker) judgeAll(g *gang, before *schedulingv1alpha1.PodGroup) bool {
	if ownerOf(before) == ownerOf(g.group) {
		return false
	}
	for _, m := range g.members {
		g.count(m, state(m, t.ours), -1)
		t.judge(g, m)
		t.enter(g, m)
	}
	return true
}

// ownerOf is the UID of a group's owner, empty if there is none.
func ownerOf(group *schedulingv1alpha1.PodGroup) types.UID {
	if group == nil {
		return ""
	}
	if owner := podgroup.Owner(group); owner != nil {
		return owner.UID
	}
	return ""
}

// waitsInVain says whether a Pod would wait for its place if it were no stranger.
// The caller holds the lock.
func (t *tracker) waitsInVain(m *member) bool {
	if !m.isStranger() {
		return false
	}
	asMember := *m
	asMember.strangerSince = time.Time{}
	return state(&asMember, t.ours) == memberWaiting
}
