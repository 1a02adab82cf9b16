// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// takings are what the members of a gang take. They are counted as each member changes: to look at all of n
// members at each event would be n² looks until the last one has come, under the lock of all gangs.
type takings struct {
	// placed is what those take that have a place, of which there are size, and bound what those take of
	// which the API server knows it.
	placed, bound provision.Amounts
	size          int
	// alive is how many of those with a place have not ended.
	alive int
	// fresh are those whose place may be new since newTimes was asked.
	fresh map[*member]bool
	// model is the largest member of a scheduler that is served here, and largest what it takes. If not
	// isModel, it is to be sought.
	model   *member
	largest provision.Amounts
	isModel bool
	// said counts the members by how many they say that there are in all.
	said map[int]int
}

// countTakings counts all members.
func (g *gang) countTakings() *takings {
	t := &takings{placed: make(provision.Amounts), bound: make(provision.Amounts), fresh: make(map[*member]bool), said: make(map[int]int)}
	for _, m := range g.members {
		t.count(g, m, 1)
	}
	return t
}

// count adds or, with sign -1, takes away a member.
func (t *takings) count(g *gang, m *member, sign int) {
	state := g.state(m)
	if state == memberOut {
		return
	}
	t.say(dialect.SizeOn(m.pod), sign)
	t.chooseAmong(g, m, sign)
	if state != memberPlaced {
		return
	}
	t.size += sign
	if m.pod.Status.Phase != corev1.PodSucceeded {
		t.alive += sign
	}
	if sign < 0 {
		delete(t.fresh, m)
		t.placed.Take(m.amounts())
		if m.bound() {
			t.bound.Take(m.amounts())
		}
		return
	}
	t.fresh[m] = true
	t.placed.Add(m.amounts())
	if m.bound() {
		t.bound.Add(m.amounts())
	}
}

func (t *takings) say(size, sign int) {
	if t.said[size] += sign; t.said[size] <= 0 {
		delete(t.said, size)
	}
}

// mostSaid is how many members there are in all as far as one says, 0 if none does.
func (t *takings) mostSaid() int {
	return slices.Max(append(slices.Collect(maps.Keys(t.said)), 0))
}

// chooseAmong keeps the model what it is to be when a member is added or taken away.
func (t *takings) chooseAmong(g *gang, m *member, sign int) {
	switch {
	case sign < 0:
		t.isModel = t.isModel && t.model != m
	case t.isModel:
		t.offer(g, m)
	case t.model == m && g.rules.Serves(m.pod.Spec.SchedulerName) && m.amounts().Compare(t.largest) >= 0:
		t.largest, t.isModel = m.amounts(), true // it has changed, and is the largest all the same
	default:
		t.model = nil
	}
}

// offer has a member be the model if it is the largest.
func (t *takings) offer(g *gang, m *member) {
	if !g.rules.Serves(m.pod.Spec.SchedulerName) {
		return
	}
	if t.model == nil || cmp.Or(m.amounts().Compare(t.largest), -compareMembers(m.pod, t.model.pod)) > 0 {
		t.model, t.largest = m, m.amounts()
	}
}

// seekModel finds the model among all members.
func (t *takings) seekModel(g *gang) {
	t.model, t.largest, t.isModel = nil, nil, true
	for _, m := range g.members {
		if g.state(m) != memberOut {
			t.offer(g, m)
		}
	}
}

// newTimes are when members got their present place, of those that have another one than when this was asked
// the last time.
func (t *takings) newTimes(now time.Time) []time.Time {
	var times []time.Time
	for m := range t.fresh {
		if at := m.placedAt(now); !at.Equal(m.timed) {
			times, m.timed = append(times, at), at
		}
	}
	clear(t.fresh)
	return times
}

// differs says whether the takings are not those of others, but for the model and what was asked.
func (t *takings) differs(from *takings) bool {
	return t.size != from.size || t.alive != from.alive || !t.placed.Equal(from.placed) || !t.bound.Equal(from.bound) || !maps.Equal(t.said, from.said)
}
