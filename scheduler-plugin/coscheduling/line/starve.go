// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Starves says whether a gang has the right to be helped now: it has waited for longer than
// its patience, is the first of those by rank, and no gang of higher priority waits that may
// yet be helped.
func (l *Line) Starves(key types.NamespacedName, now time.Time) bool {
	l.tick(now)
	g := l.gangs[key]
	if g == nil || l.starved.first() != g {
		return false
	}
	for _, other := range l.gangs {
		if other.rank.Priority > g.rank.Priority && other.waits() && !other.helpless.After(now) {
			return false
		}
	}
	return true
}

// GiveUpHelp has a gang give up its right to be helped for a while.
func (l *Line) GiveUpHelp(key types.NamespacedName, d time.Duration, now time.Time) {
	if g := l.gangs[key]; g != nil {
		g.helpless = now.Add(d)
		l.helped = nil
		l.arrange(g, now)
	}
}

// help has the gang be ready that is the first to starve.
func (l *Line) help(now time.Time) {
	first := l.starved.first()
	if first == nil || first == l.helped {
		return
	}
	l.helped = first
	if first.state == refused {
		l.wake(first, now)
	}
}

// Told is what a gang was told when it was refused last; false if it was not since it had a
// place.
func (l *Line) Told(key types.NamespacedName) (Refusal, bool) {
	if g := l.gangs[key]; g != nil && g.refusal != nil {
		return *g.refusal, true
	}
	return Refusal{}, false
}

// IsReady says whether a gang is to have a turn, now or when its back-off is over, even if
// nothing happens.
func (l *Line) IsReady(key types.NamespacedName) bool {
	g := l.gangs[key]
	return g != nil && (g.state == ready || g.state == turning)
}

// Since is since when a gang waits: it was first planned then. Zero if it was not planned
// since its minimum was bound.
func (l *Line) Since(key types.NamespacedName) time.Time {
	if g := l.gangs[key]; g != nil {
		return g.since
	}
	return time.Time{}
}

// Failures are the turns and placements of a gang in a row that came to nothing.
func (l *Line) Failures(key types.NamespacedName) int {
	if g := l.gangs[key]; g != nil {
		return g.failures + g.unbound
	}
	return 0
}
