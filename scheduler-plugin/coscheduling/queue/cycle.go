// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// ReservedFor begins the part of the message of a Refusal that names the gang of a reservation.
const ReservedFor = "resources are reserved for "

// Refusal is why a gang found no place in its cycle.
type Refusal struct {
	// Message says why.
	Message string
	// Unready says that it is not room that is missing: members may not be scheduled yet.
	Unready bool
	// Room is how many of the members that the minimum lacks had a place. If it grows from
	// cycle to cycle, the cluster is freeing what the gang needs, and its back-off starts over.
	Room int
	// Need is what must happen before another cycle is of use.
	Need Need
	// Shape is equal for gangs that would have been refused in the same way, empty for one
	// that is like no other.
	Shape string
	// Again is when the gang is to have another cycle even if nothing happens; zero for no time
	// but idleAfter.
	Again time.Time
	// Helpless is for how long the gang gives up its right to be helped, because no room can
	// be reserved for it. 0: it keeps it.
	Helpless time.Duration
	// Took is how long a cycle has taken that was long, 0 for other cycles. Overdue says that it was given up.
	Took    time.Duration
	Overdue bool
}

// idleAfter is after what time a gang that was refused, or one ahead that is like it, has
// another cycle even if nothing is known to have happened: something may help that nobody
// tells of.
const idleAfter = time.Minute

// Terms are how long a gang waits for what.
type Terms struct {
	// Initial is the first back-off, and Longest the longest.
	Initial, Longest time.Duration
}

// Alike ends the cycle of a gang whose shape is known to find no place, as another gang ahead
// of it was refused and nothing has happened since that may help. It returns what that one
// was told, or false: then the gang is to be planned.
func (q *Queue) Alike(key dialect.Key, shape string, now time.Time) (Refusal, bool) {
	g := q.gangs[key]
	if g == nil || g.state != inCycle || g.woken {
		return Refusal{}, false
	}
	s := q.shapes.closed(shape, g.rank)
	if s == nil {
		return Refusal{}, false
	}
	g.initial = s.terms.Initial
	g.alike++
	q.refuse(g, s, now)
	return s.refusal, true
}

// Refused ends the cycle of a gang that found no place.
func (q *Queue) Refused(key dialect.Key, why Refusal, terms Terms, now time.Time) {
	g := q.gangs[key]
	if g == nil {
		return
	}
	if why.Room > g.room {
		g.failures, g.alike = 0, 0
	}
	g.failures++
	g.room, g.initial = why.Room, terms.Initial
	g.notBefore = now.Add(backOff(g.failures, terms.Initial, terms.Longest))
	g.again = why.Again
	if why.Helpless > 0 {
		g.helpless = now.Add(why.Helpless)
		q.giveUpWith(why.Shape, g.helpless, now)
	}
	if g.slow = why.Took > 0; g.slow {
		q.slowUntil = times.Later(q.slowUntil, now.Add((slowShareOfAll-1)*why.Took))
	}
	if g.overdue = why.Overdue; g.overdue {
		q.debts.Owe(key.Namespace, why.Took, now)
		why.Shape = "" // the others may be planned in time
	}
	g.refusal = &why
	if g.state != inCycle { // It has left the queue in its cycle.
		q.arrange(g, now)
		return
	}
	gained, helped := q.missed.help(&why.Need)
	if helped || g.woken {
		// It has another cycle. The refusal says nothing of others: it was old when it came.
		q.end(g)
		g.state = ready
		if s := g.tries; s != nil && s.name == why.Shape {
			s.refusedAgain(g, now)
			g.notBefore = s.notBefore
		}
		q.arrange(g, now)
		if g.tries != nil && g.tries.name != why.Shape {
			q.pass(g, now)
		}
		return
	}
	q.refuse(g, q.shapes.refused(g, why, terms, gained, now), now)
}

// refuse ends the cycle of a gang, which waits with a shape from now on.
func (q *Queue) refuse(g *gang, s *shape, now time.Time) {
	q.end(g)
	g.state, g.refusal = refused, &s.refusal
	if g.tries == s {
		g.tries, s.tried = nil, nil
	}
	s.spare(g, now)
	if other := s.tried; other != nil && s.notBefore.Before(other.notBefore) {
		other.notBefore = s.notBefore
		q.arrange(other, now)
	}
	q.shapes.join(g, s)
	q.arrange(g, now)
	q.pass(g, now)
}

// Placed records that a gang has its place, in its cycle: what it was told before is old.
// If members are left that wait, it is still in its cycle.
func (q *Queue) Placed(key dialect.Key, rest bool, now time.Time) {
	g := q.gangs[key]
	if g == nil {
		return
	}
	g.refusal, g.failures, g.alike, g.room, g.slow, g.overdue, g.lacks = nil, 0, 0, 0, false, false, false
	g.notBefore, g.early, g.again, g.helpless = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	q.arrange(g, now)
	q.pass(g, now)
	if !rest {
		q.leave(g, now)
	}
	q.arrange(g, now)
}

// Unbound records that a member of a gang's last placement could not be bound. The gang
// backs off, and what it was told of the rest is old.
func (q *Queue) Unbound(key dialect.Key, terms Terms, now time.Time) {
	g := q.gangs[key]
	if g == nil {
		return
	}
	g.unbound++
	g.unboundUntil = now.Add(backOff(g.unbound, terms.Initial, terms.Longest))
	q.part(g, now)
	g.refusal, g.failures, g.alike = nil, 0, 0
	if g.state == refused {
		g.state = ready
	}
	q.arrange(g, now)
}

// Bound records that the members of a gang's placements are bound: it has no back-off for
// those that were not.
func (q *Queue) Bound(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		g.unbound, g.unboundUntil = 0, time.Time{}
		q.arrange(g, now)
	}
}

// Settled records that a gang's minimum is bound: since when it waits begins anew.
func (q *Queue) Settled(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		g.since = time.Time{}
		q.arrange(g, now)
	}
}
