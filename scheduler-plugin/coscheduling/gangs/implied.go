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

// A gang may have no PodGroup: its members say how many of them are to be placed together. Then
// a group is made of that, which is there as long as one says so. If they differ the highest
// counts. A PodGroup that is there counts alone. So nothing is made as long as it can't be known that there is none.

// impliedGrace is how long after its PodGroup was deleted a gang has none: whoever makes it anew does so at once.
const impliedGrace = 2 * time.Second

// hear notes the minimum that a new member says. The member must not be counted yet.
func hear(g *gang, m *member, now time.Time) {
	if created := m.pod.CreationTimestamp.Time; g.oldest.IsZero() || created.Before(g.oldest) {
		g.oldest = created
	}
	say(g, m, g.rules.Links.MinimumBy(m.pod), now)
}

// listen notes the minimum that a member says now. It says whether the group is another one.
func listen(g *gang, m *member, pod *corev1.Pod, now time.Time) bool {
	minimum := g.rules.Links.MinimumBy(pod)
	return minimum != m.minimum && say(g, m, minimum, now)
}

// unhear forgets the minimum that a member says.
func unhear(g *gang, m *member, now time.Time) {
	say(g, m, 0, now)
	if len(g.members) == 0 {
		g.oldest = time.Time{}
	}
}

// say has a member say another minimum, 0 for none. It says whether the group is another one.
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

// imply has the gang have the group that its members say, if it has no PodGroup. It says whether
// that is another one than before.
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

// saidMinima are the minima that members say, ascending, if there is no PodGroup.
func saidMinima(g *gang) []int32 {
	if g.group == nil || !g.group.IsImplied() {
		return nil
	}
	return slices.Sorted(maps.Keys(g.minima))
}
