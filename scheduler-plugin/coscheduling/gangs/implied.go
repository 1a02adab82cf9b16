// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// A gang may have no PodGroup, but members that ask for a minimum. Such a gang gets an implied group, for as long as a
// member asks. If the members differ, the highest minimum counts. If a PodGroup exists, only the PodGroup counts; so no
// group is implied while the existence of a PodGroup is unknown.

// impliedGrace is how long after the deletion of its PodGroup a gang gets no implied group. A controller that recreates
// the PodGroup does so at once.
const impliedGrace = 2 * time.Second

// hear records the minimum of a new member, which must not be counted yet.
func hear(g *gang, m *member, now time.Time) {
	if created := m.pod.CreationTimestamp.Time; g.oldest.IsZero() || created.Before(g.oldest) {
		g.oldest = created
	}
	say(g, m, g.rules.Links.MinimumBy(m.pod), now)
}

// listen records the minimum that a changed member now states. It reports whether the gang's implied group has changed.
func listen(g *gang, m *member, pod *corev1.Pod, now time.Time) bool {
	minimum := g.rules.Links.MinimumBy(pod)
	return minimum != m.minimum && say(g, m, minimum, now)
}

// unhear drops the minimum of a member.
func unhear(g *gang, m *member, now time.Time) {
	say(g, m, 0, now)
	if len(g.members) == 0 {
		g.oldest = time.Time{}
	}
}

// say sets the minimum that a member states, 0 for none. It reports whether the gang's implied group has changed.
func say(g *gang, m *member, minimum int32, now time.Time) bool {
	if m.minimum > 0 {
		if g.minima[m.minimum]--; g.minima[m.minimum] == 0 {
			delete(g.minima, m.minimum)
		}
	}
	if m.minimum = minimum; minimum > 0 {
		g.minima[minimum]++
	}
	return imply(g, now)
}

// imply gives the gang an implied group, with the highest minimum that its members state, if there is no PodGroup. It
// reports whether the group has changed.
func imply(g *gang, now time.Time) bool {
	if g.group != nil && !g.group.IsImplied() || g.group == nil && (g.unseen || now.Before(g.awaited)) {
		return false
	}
	if len(g.minima) == 0 {
		if g.group == nil {
			return false
		}
		g.loseGroup(now)
		return true
	}
	highest := slices.Max(slices.Collect(maps.Keys(g.minima)))
	if g.group != nil && g.group.Spec.Minimum.Members == highest && g.group.Created.Equal(g.oldest) {
		return false
	}
	_, isNews := g.setGroup(dialect.Implied(g.key, highest, g.oldest), now)
	return isNews
}

// saidMinima returns the minima that members ask for, ascending, if there is no PodGroup.
func saidMinima(g *gang) []int32 {
	if g.group == nil || !g.group.IsImplied() {
		return nil
	}
	return slices.Sorted(maps.Keys(g.minima))
}
