// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// IsFirst reports whether a gang has the right to a reservation: the gang is refused or in its cycle, and no gang ahead of it may have
// a reservation.
func (q *Queue) IsFirst(key dialect.Key) bool {
	first := q.hopeful.first()
	return first != nil && first.rank.Key == key
}

// giveUpWith takes the right to a reservation from all gangs of a shape until the given time, because no room can be
// reserved for any of them.
func (q *Queue) giveUpWith(s *shape, until, now time.Time) {
	alike := slices.Clone(s.waiting.items)
	if s.tried != nil {
		alike = append(alike, s.tried)
	}
	for _, g := range alike {
		g.helpless = times.Later(g.helpless, until)
		q.arrange(g, now)
	}
}

// Told returns a gang's last refusal. It returns false if the gang has not been refused since it was last placed.
func (q *Queue) Told(key dialect.Key) (Refusal, bool) {
	if g := q.gangs[key]; g != nil && g.refusal != nil {
		return *g.refusal, true
	}
	return Refusal{}, false
}

// IsReady reports whether a gang will have a cycle, at once or after its back-off, even if no event comes.
func (q *Queue) IsReady(key dialect.Key) bool {
	g := q.gangs[key]
	return g != nil && (g.state == ready || g.state == inCycle)
}

// Since returns when a gang began to wait. It is zero if the gang has had no cycle since its minimum was last bound.
func (q *Queue) Since(key dialect.Key) time.Time {
	if g := q.gangs[key]; g != nil {
		return g.since
	}
	return time.Time{}
}

// Failures returns how many cycles and placements of a gang failed in a row.
func (q *Queue) Failures(key dialect.Key) int {
	if g := q.gangs[key]; g != nil {
		return g.failures + g.unbound
	}
	return 0
}

// BackOff returns when a gang's last back-off ends or ended, zero if there was none.
func (q *Queue) BackOff(key dialect.Key) time.Time {
	if g := q.gangs[key]; g != nil && g.state != out {
		return times.Later(g.notBefore, g.unboundUntil)
	}
	return time.Time{}
}
