// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// ReservedFor begins the part of a Refusal's message that names the gang for which room is reserved.
const ReservedFor = "resources are reserved for "

// Refusal says why a gang found no place in its cycle.
type Refusal struct {
	// Message is the reason for users.
	Message string
	// Unready reports that room is not what the gang lacks: its members can't be scheduled yet for another reason.
	Unready bool
	// Room is how many of the members that the minimum lacks had a place. If there is more room than in the previous
	// cycle, the cluster is freeing what the gang needs, and the back-off starts over.
	Room int
	// Need is what must happen before another cycle can help.
	Need Need
	// Shape is equal for gangs that would be refused for the same reason. It is "" for a gang that can't be compared
	// with others.
	Shape string
	// Runs is how long the gang runs, 0 if unknown. Gangs that run no longer than Gap have another Shape: they end before reserved
	// room is needed for another gang, and this gang does not. 0: there is no such room.
	Runs, Gap time.Duration
	// Again is when the gang has another cycle even if nothing happens. Zero: after renewAfter or idleAfter. The first gang of a
	// shape has one after idleAfter at the latest.
	Again time.Time
	// Helpless is how long the gang loses its right to a reservation, because no room can be reserved for the gang. 0:
	// the gang keeps the right.
	Helpless time.Duration
	// Took is how long the cycle took if it was long, else 0. Overdue reports that the cycle was given up because it
	// took too long.
	Took    time.Duration
	Overdue bool
}

// idleAfter is how long after a refusal the first gang of a shape has another cycle even without a known event: some
// changes cause no event, for instance of a PodDisruptionBudget. kube-scheduler tries Pods as often by default. There may be
// thousands of shapes, so this time decides how much work a queue is in which nothing happens.
const idleAfter = 5 * time.Minute

// renewAfter is the same for the gang that has the right to a reservation, if the gang's refusal names no time. The gang may get a
// reservation in that cycle.
const renewAfter = time.Minute

// Terms are the back-off times of a gang.
type Terms struct {
	// Initial is the first back-off, and Longest the longest.
	Initial, Longest time.Duration
}

// RefuseAlike refuses a gang in its cycle without planning it, if a gang ahead of the same shape was refused and nothing that
// may help has happened since. `runs` is how long the gang runs, 0 if unknown. The result is the refusal of the gang ahead, or
// false if the gang has to be planned.
func (q *Queue) RefuseAlike(key dialect.Key, shape string, runs time.Duration, now time.Time) (Refusal, bool) {
	g := q.gangs[key]
	if g == nil || g.state != inCycle || g.woken {
		return Refusal{}, false
	}
	s := q.shapes.closed(shape, g.rank)
	if s == nil {
		return Refusal{}, false
	}
	g.initial, g.runs = s.terms.Initial, runs
	g.alike++
	q.refuse(g, s, now)
	return s.refusal, true
}

// Refused ends the cycle of a gang that found no place. The gang may have left the queue during its cycle.
func (q *Queue) Refused(key dialect.Key, why Refusal, terms Terms, now time.Time) {
	g := q.gangs[key]
	if g == nil {
		return
	}
	if why.Room > g.room {
		g.failures, g.alike = 0, 0
	}
	g.failures++
	g.room, g.initial, g.runs = why.Room, terms.Initial, why.Runs
	g.notBefore = now.Add(backOff(g.failures, terms.Initial, terms.Longest))
	if g.again = why.Again; !g.again.IsZero() {
		g.notBefore = times.Sooner(g.notBefore, times.Later(g.again, now.Add(terms.Initial)))
	}
	if why.Helpless > 0 {
		g.helpless = now.Add(why.Helpless)
	}
	if g.slow = why.Took > 0; g.slow {
		q.slowUntil = times.Later(q.slowUntil, now.Add((slowShareOfAll-1)*why.Took))
	}
	if g.overdue = why.Overdue; g.overdue {
		q.debts.Owe(key.Namespace, why.Took, now)
		why.Shape = "" // the cycles of gangs of the same shape may end in time
	}
	g.refusal = &why
	if g.state != inCycle { // the gang has left the queue during its cycle
		q.arrange(g, now)
		return
	}
	gained, helped := q.missed.help(&why.Need)
	if helped || g.woken {
		// What was missed may help, so the gang has another cycle. The outdated refusal does not count for other gangs.
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
	s := q.shapes.refused(g, why, terms, gained, now)
	q.wakeWithin(s, why.Gap, now) // the gap may have been shorter when these gangs were refused
	if why.Helpless > 0 {
		q.giveUpWith(s, g.helpless, now)
	}
	q.refuse(g, s, now)
}

// refuse ends the cycle of a gang. From then on the gang waits together with the other refused gangs of the shape s.
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
	q.entitle(now)
}

// Placed records that a gang got its place, and drops the gang's last refusal. `rest` reports that other members still
// wait; then the gang stays in its cycle.
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
}

// Unbound records that a member with a place could not be bound. The gang backs off. If other members were refused in
// the same cycle, their refusal is dropped, because it is out of date.
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

// Bound records that all members with a place are bound. It ends a back-off after failed bindings.
func (q *Queue) Bound(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		g.unbound, g.unboundUntil = 0, time.Time{}
		q.arrange(g, now)
	}
}

// Settled records that a gang's minimum is bound. If members wait later, the time that Since returns begins with the
// gang's next cycle.
func (q *Queue) Settled(key dialect.Key) {
	if g := q.gangs[key]; g != nil {
		g.since = time.Time{}
	}
}
