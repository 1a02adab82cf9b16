// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// A group may ask for room that is kept for members which are still to come (package provision).
// How much that is follows from its members. When it is another amount than that for which room
// was sought, the gang is in line, too: whether or not a member waits, its turn seeks the room.

// provided is what a gang has of that.
type provided struct {
	// due is what room is to be kept, nil for none.
	due *provision.Due
	// least is the least that it has been, nil before a member is placed, and life since when it
	// is kept.
	least provision.Amounts
	life  provision.Life
	// ended is since when nothing is kept any more, zero while something is. Past is what was kept for
	// members before these.
	ended time.Time
	past  provision.Past
	// started says that the gang has had its minimum, and over that no room is kept any more.
	started, over bool
	// sought is for how much room was sought last, if isSought. Partial says that there was less, and
	// freed is what Gangs had counted when the turn for it began.
	sought   provision.Amounts
	isSought bool
	partial  bool
	freed    int
	// held says that some room was kept for these members, were it just places for Pods.
	held bool
	// stale says that room was asked to be sought anew while it was being sought.
	stale bool
}

// Kept is what becomes of room that is kept for members to come.
type Kept string

const (
	// KeptOn: it is kept on.
	KeptOn Kept = ""
	// KeptFilled: nothing is left to keep: the members have come, or the group asks for no more.
	KeptFilled Kept = "filled"
	// KeptExpired: no member has come for too long, or it was kept for too long in all.
	KeptExpired Kept = "expired"
	// KeptGone: the group is gone, or all of its members.
	KeptGone Kept = "gone"
)

// provide finds out what room is to be kept for the gang. It costs gangs nothing that ask for
// none.
func (g *gang) provide(now time.Time) {
	p := &g.provided
	p.due = nil
	if g.group == nil || g.group.Spec.Provision.Resources == nil || g.rules.Provision == nil {
		return
	}
	ask := &g.group.Spec.Provision
	terms := g.rules.Provision(g.key)
	if terms.Mode == provision.Off {
		return
	}
	seen := g.takings()
	ended := seen.alive == 0 && !g.isBetweenStages()
	if ended && p.hasBegun() {
		p.beginAnew(terms.Longest, now)
		g.taken = nil // the times of those that have succeeded are looked at once more
		seen = g.takings()
	}
	// What has succeeded may be the minimum. Who comes then is above it, and starts no gang.
	isOver := ended && !g.lacksMinimum()
	if seen.model == nil || isOver {
		return
	}
	due := &provision.Due{Terms: terms, Lacking: ask.Resources.Less(seen.placed), Least: ask.Resources, Model: seen.model.pod}
	due.Patience = provision.Patience(ask.Timeout, terms.Longest)
	if members := max(ask.Members, seen.mostSaid()); members > 0 {
		due.ToCome = max(1, members-seen.size)
	}
	if ended {
		due.Last = p.past.Last(terms.Longest, now)
		due.End = due.Last
		p.due = due
		return
	}
	if p.least == nil {
		p.least = ask.Resources
	}
	p.least = p.least.AtMost(ask.Resources.Less(seen.bound))
	p.started = p.started || !g.lacksMinimum()
	starts := p.life.Began.IsZero()
	if p.life = p.life.With(seen.newTimes(now), due.Patience, now); starts {
		p.life = p.life.After(p.past)
	}
	due.Least, due.Started = p.least, p.started
	due.End, due.Last = p.life.Ends(due.Patience, terms.Longest)
	p.over = p.over || p.started && !now.Before(due.End)
	if p.over || p.started && due.Rest().IsZero() {
		if p.ended.IsZero() {
			p.ended = now
		}
		return
	}
	p.ended, p.due = time.Time{}, due
}

// hasBegun says whether anything is known of members that had a place.
func (p *provided) hasBegun() bool {
	return p.least != nil || !p.life.Began.IsZero() || p.started || p.over || !p.ended.IsZero() || p.isSought || p.held
}

// beginAnew forgets the members that had room kept, as none is left, but not for how long they had it.
func (p *provided) beginAnew(longest time.Duration, now time.Time) {
	past := p.past
	if p.started && p.held {
		if p.ended.IsZero() {
			p.ended = now
		}
		past = p.life.Over(p.ended, longest)
	}
	*p = provided{past: past}
}

// takings are the takings now.
func (g *gang) takings() *takings {
	if g.taken == nil {
		g.taken = g.countTakings()
		for _, m := range g.members {
			m.timed = time.Time{}
		}
	}
	if !g.taken.isModel {
		g.taken.seekModel(g)
	}
	return g.taken
}

// amounts are what a member takes of a node.
func (m *member) amounts() provision.Amounts {
	if m.takes == nil || m.takesAt != m.pod.Generation {
		m.takes, m.takesAt = provision.OfPod(m.pod), m.pod.Generation
	}
	return m.takes
}

// placedAt is when a member was placed that is, by the own clock if that was seen: the one of the API server
// may be wrong. Of one that had its place before, as after a restart, the API server says it.
func (m *member) placedAt(now time.Time) time.Time {
	if !m.placedSince.IsZero() {
		return m.placedSince
	}
	for i := range m.pod.Status.Conditions {
		if c := &m.pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	m.placedSince = now
	return now
}

// wantsRoom says whether room is to be sought for members to come.
func (g *gang) wantsRoom() bool {
	p := &g.provided
	return p.due != nil && p.started && p.due.Longest > 0 && !(p.isSought && p.sought.Equal(p.due.Rest()))
}

// inLine says whether the gang is to have a turn.
func (g *gang) inLine() bool {
	return g.complete() || g.wantsRoom()
}

// Sought is what has come of seeking room for members to come.
type Sought struct {
	// Rest is for how much room was sought, and Held how much there was, but for places for Pods.
	Rest, Held provision.Amounts
	// Kept says that there was any, such places too.
	Kept bool
}

// Sought records that room was sought in a gang's turn for members to come.
func (t *Gangs) Sought(key dialect.Key, uid types.UID, what Sought) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !g.isOf(uid) {
		return
	}
	p := &g.provided
	p.sought, p.isSought = what.Rest, true
	p.held = p.held || what.Kept
	p.partial = !what.Rest.WithoutPods().Within(what.Held)
	if p.partial {
		t.partial[key] = true
		if p.freed != t.freed {
			p.isSought = false // some may have become free meanwhile
		}
	} else {
		delete(t.partial, key)
	}
	if p.stale {
		p.isSought = false
	}
	if !g.complete() || g.wantsRoom() && !p.due.Rest().Equal(what.Rest) {
		t.lineUp(g) // it has had its turn for this, or members have come or gone meanwhile
		t.config.Stir()
	}
}

// EndSeek ends the turn of a gang of which no member waited, and which took so long, whatever has come of
// it: what is left to be sought has another turn.
func (t *Gangs) EndSeek(key dialect.Key, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.Sought(key, took, t.config.Now())
	if g := t.gangs[key]; g != nil {
		t.lineUp(g)
		t.config.Stir()
	}
}

// SeekRoom has room for members to come be sought anew: what is kept may be taken. A gang that has members that
// wait seeks it with their next turn: that others have taken room is no help to them.
func (t *Gangs) SeekRoom(key dialect.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil {
		return
	}
	g.provided.isSought, g.provided.stale = false, true
	g.provide(t.config.Now())
	if waits := g.complete(); !waits {
		t.lineUp(g)
	}
	t.config.Stir() // room may be given up
}

// free has more room be sought for members to come where there was not enough, as some has become free. One
// that has members that wait seeks it with their next turn. The caller holds the lock.
func (t *Gangs) free(by dialect.Key) {
	t.freed++
	if g := t.gangs[by]; g != nil {
		g.provided.freed++ // it has seen that
	}
	for key := range t.partial {
		if key == by {
			continue
		}
		delete(t.partial, key) // until it was sought
		g := t.gangs[key]
		if g == nil || g.provided.due == nil {
			continue
		}
		if g.provided.isSought = false; !g.complete() {
			t.lineUp(g)
			t.config.Stir()
		}
	}
}

// Provides says what becomes of the room that is kept for members to come of the group with this
// UID.
func (t *Gangs) Provides(key dialect.Key, uid types.UID) Kept {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	switch {
	case g == nil, !g.isOf(uid), g.provided.least == nil:
		return KeptGone
	case g.provided.over:
		return KeptExpired
	case g.provided.due == nil:
		return KeptFilled
	}
	return KeptOn
}

// EndProvision has no more room be kept for members to come: the time for it is over.
func (t *Gangs) EndProvision(key dialect.Key, uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[key]; g != nil && g.isOf(uid) {
		g.provided.over = true
		t.changed(g)
	}
}
