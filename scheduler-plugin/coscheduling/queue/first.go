// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// IsFirst says whether a gang has the right to be helped now: of those that found no place, and may be helped, it is the first in
// the order of the queue. It is asked in the gang's cycle.
func (q *Queue) IsFirst(key dialect.Key, now time.Time) bool {
	q.tick(now)
	g := q.gangs[key]
	return g != nil && q.hopeful.first() == g
}

// giveUpWith has the gangs of a shape give up their right to be helped until a time: what is
// in vain for one of them is for all.
func (q *Queue) giveUpWith(shape string, until, now time.Time) {
	s := q.shapes.named[shape]
	if s == nil {
		return
	}
	alike := slices.Clone(s.waiting.items)
	if s.tried != nil {
		alike = append(alike, s.tried)
	}
	for _, g := range alike {
		g.helpless = times.Later(g.helpless, until)
		q.arrange(g, now)
	}
}

// Told is what a gang was told when it was refused last; false if it was not since it had a
// place.
func (q *Queue) Told(key dialect.Key) (Refusal, bool) {
	if g := q.gangs[key]; g != nil && g.refusal != nil {
		return *g.refusal, true
	}
	return Refusal{}, false
}

// IsReady says whether a gang is to have a cycle, now or when its back-off is over, even if
// nothing happens.
func (q *Queue) IsReady(key dialect.Key) bool {
	g := q.gangs[key]
	return g != nil && (g.state == ready || g.state == inCycle)
}

// Since is since when a gang waits: it was first planned then. Zero if it was not planned
// since its minimum was bound.
func (q *Queue) Since(key dialect.Key) time.Time {
	if g := q.gangs[key]; g != nil {
		return g.since
	}
	return time.Time{}
}

// Failures are the cycles and placements of a gang in a row that came to nothing.
func (q *Queue) Failures(key dialect.Key) int {
	if g := q.gangs[key]; g != nil {
		return g.failures + g.unbound
	}
	return 0
}

// BackOff is the end of a gang's back-off, as far as it has one. Zero or over: it is in none.
func (q *Queue) BackOff(key dialect.Key) time.Time {
	if g := q.gangs[key]; g != nil && g.state != out {
		return times.Later(g.notBefore, g.unboundUntil)
	}
	return time.Time{}
}
