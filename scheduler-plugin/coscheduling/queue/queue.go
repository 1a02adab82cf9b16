// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Queue holds the gangs that wait, in the order of their ranks. It is not safe for concurrent use.
type Queue struct {
	gangs map[dialect.Key]*gang
	// due has the gangs that may have a cycle now. early has gangs that are in their back-off, but may have a cycle
	// before a gang behind them.
	due, early ordered
	// hopeful has the gangs that may have a reservation. Only the first has the right to one.
	hopeful ordered
	timers  ordered
	shapes  shapes
	debts   Debts
	// slowUntil is the end of a pause. Until then, a gang has no cycle if its last cycle took long and found no place.
	slowUntil time.Time
	// planned is the gang in its cycle, nil for none. missed has the events since that cycle began.
	planned *gang
	missed  missed
	// wasEarly reports that the last cycle was of a gang in its back-off.
	wasEarly bool
}

// New returns an empty queue.
func New() *Queue {
	return &Queue{
		gangs: make(map[dialect.Key]*gang),
		due:   byRank(slotDue), early: byRank(slotEarly), timers: byTime(slotTimer),
		hopeful: byRank(slotHopeful),
		shapes:  newShapes(), debts: make(Debts),
	}
}

// Enter makes a gang ready. The gang is new in the queue, or something has changed that concerns this gang alone.
// `lacks` reports that the gang lacks its minimum; otherwise only members above the minimum wait.
func (q *Queue) Enter(rank Rank, lacks bool, now time.Time) {
	g := q.gangs[rank.Key]
	if g == nil {
		g = &gang{}
		q.gangs[rank.Key] = g
	}
	g.lacks = lacks
	if g.state == out {
		g.state = ready
	}
	q.move(g, rank, now)
	q.wake(g, now)
}

// Rerank gives a gang another rank. A gang that moves forward becomes ready, because it may now use reservations of
// gangs that were ahead.
func (q *Queue) Rerank(rank Rank, now time.Time) {
	g := q.gangs[rank.Key]
	if g == nil {
		return
	}
	forward := rank.Compare(g.rank) < 0
	q.move(g, rank, now)
	if forward && g.state != out {
		q.wake(g, now)
	}
}

// Wake makes a gang ready if the gang is in the queue.
func (q *Queue) Wake(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil && g.state != out {
		q.wake(g, now)
	}
}

// Leave takes a gang out of the queue. The gang's back-off goes on.
func (q *Queue) Leave(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		q.leave(g, now)
	}
}

// Forget removes all that is known of a gang, also its back-off.
func (q *Queue) Forget(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		q.leave(g, now)
		delete(q.gangs, key)
	}
}

// Next returns the gang that has the next cycle, false if no gang may have a cycle now.
func (q *Queue) Next(now time.Time) (Rank, bool) {
	q.tick(now)
	first := q.due.first()
	for first != nil && !q.mayBegin(first, now) {
		q.arrange(first, now) // the namespace got into debt since, or another cycle was long
		first = q.due.first()
	}
	if first == nil {
		return Rank{}, false
	}
	for ahead := q.early.first(); !q.wasEarly && ahead != nil && ahead.rank.Compare(first.rank) < 0; ahead = q.early.first() {
		if q.mayBegin(ahead, now) {
			return ahead.rank, true
		}
		q.arrange(ahead, now)
	}
	return first.rank, true
}

// DueSince returns when the gang that Next returns became due. If that gang is in its back-off, the result is the time
// for the first due gang behind it. It is zero if no gang is due.
func (q *Queue) DueSince() time.Time {
	if first := q.due.first(); first != nil {
		return first.dueSince
	}
	return time.Time{}
}

// Until returns when to call Next again if nothing happens before; zero for never.
func (q *Queue) Until() time.Time {
	if first := q.timers.first(); first != nil {
		return first.timer
	}
	return time.Time{}
}

// Begin begins the cycle of a gang that Next has returned. `since` is when the gang began to wait according to its
// PodGroup; zero if unknown.
func (q *Queue) Begin(key dialect.Key, since, now time.Time) {
	g := q.gangs[key]
	if g == nil || g.state == out {
		return
	}
	if q.wasEarly = g.state == ready && g.notBefore.After(now); q.wasEarly {
		g.early = now.Add(g.initial)
	}
	if since.IsZero() || since.After(now) {
		since = now // others write the PodGroup, so the time may be in the future
	}
	if g.since.IsZero() || since.Before(g.since) {
		g.since = since
	}
	if other := q.planned; other != nil {
		// The other gang's cycle ended without an outcome. That gang must not stay in its cycle for ever.
		q.end(other)
		other.state = ready
		q.arrange(other, now)
	}
	q.part(g, now)
	g.state, g.again, q.planned = inCycle, time.Time{}, g
	g.hadTurn = true
	q.arrange(g, now)
	g.wasFirst = q.IsFirst(key)
}

// end ends the cycle of a gang if the gang is in its cycle.
func (q *Queue) end(g *gang) {
	if q.planned == g {
		q.planned, q.missed, g.woken = nil, missed{}, false
	}
}

// Happened makes gangs ready that an event in the cluster may help.
func (q *Queue) Happened(event Event, now time.Time) {
	if q.planned != nil && q.planned.rank.Key != event.By {
		q.missed.add(event)
	}
	for _, s := range q.shapes.helpedBy(&event) {
		q.try(s, now)
	}
}

// Listens reports whether events of a kind could help any gang.
func (q *Queue) Listens(kind EventKind) bool {
	return q.planned != nil || q.shapes.listens(kind)
}

// try makes one gang of a shape ready, on behalf of all gangs of the shape: the first gang that is not barred.
func (q *Queue) try(s *shape, now time.Time) {
	for s.tried == nil {
		g := s.waiting.first()
		if g == nil {
			return
		}
		q.part(g, now)
		g.state, g.notBefore = ready, s.notBefore
		if !q.barred(g).After(now) {
			s.tried, g.tries = g, s
		} // a barred gang would make the others wait, too
		q.arrange(g, now)
	}
}

// WakeWithin makes those refused gangs ready that run no longer than a gap: reserved room is needed after that gap, later than when
// these gangs were refused.
func (q *Queue) WakeWithin(gap time.Duration, now time.Time) {
	for s := range q.shapes.all {
		if s.refusal.Gap > 0 {
			q.wakeWithin(s, gap, now)
		}
	}
}

// wakeWithin makes those gangs of a shape ready that run no longer than a gap.
func (q *Queue) wakeWithin(s *shape, gap time.Duration, now time.Time) {
	for g := s.byRuns.first(); g != nil && 0 < g.runs && g.runs <= gap; g = s.byRuns.first() {
		q.wake(g, now)
	}
}

// wake makes a gang ready, after its cycle if the gang is in one.
func (q *Queue) wake(g *gang, now time.Time) {
	switch g.state {
	case inCycle:
		g.woken = true
	case refused:
		q.part(g, now)
		g.state = ready
	}
	q.arrange(g, now)
}

// tick updates the gangs for which a time has come.
func (q *Queue) tick(now time.Time) {
	for g := q.timers.first(); g != nil && !g.timer.After(now); g = q.timers.first() {
		if g.state == refused && !g.again.IsZero() && !g.again.After(now) {
			g.again = time.Time{}
			q.wake(g, now)
		}
		if s := g.in; s != nil && s.waiting.first() == g && !s.idle.After(now) {
			s.idle = now.Add(idleAfter)
			q.try(s, now)
		}
		q.arrange(g, now)
	}
	q.entitle(now)
}

// entitle has the gang with the right to a reservation try again. A gang that has got the right since its last cycle is tried at once,
// without a back-off, before a gang behind takes the room. Any other gang is tried soon, or at the time that is set for the gang.
func (q *Queue) entitle(now time.Time) {
	first := q.hopeful.first()
	switch {
	case first == nil || first.state == inCycle:
	case !first.wasFirst:
		first.wasFirst, first.notBefore = true, now
		q.wake(first, now)
	case first.state == refused && first.again.IsZero():
		first.again = now.Add(renewAfter)
		q.arrange(first, now)
	}
}

// arrange puts a gang into the heaps in which the gang belongs now. If the gang was to be tried on behalf of its shape,
// but is barred, the next gang of the shape is tried.
func (q *Queue) arrange(g *gang, now time.Time) {
	q.shapes.reorder(g)
	var due, early, barred bool
	var at time.Time
	switch g.state {
	case ready:
		switch until := q.barred(g); {
		case until.After(now):
			barred, at = true, until
		case q.slow(g).After(now):
			at = q.slow(g)
		case !g.notBefore.After(now):
			due = true
		case !g.early.After(now):
			early, at = true, g.notBefore
		default:
			at = times.Sooner(g.notBefore, g.early)
		}
	case refused:
		at = g.again
		if g.in.waiting.first() == g {
			at = times.Sooner(at, g.in.idle)
		}
	}
	hopeful, changes := g.isHopeful(now)
	at = times.Sooner(at, changes)
	if due && g.slots[slotDue] == 0 {
		g.dueSince = now
	}
	q.due.put(g, due)
	q.early.put(g, early)
	q.hopeful.put(g, hopeful)
	// A gang's time must not change while the gang is in the heap.
	q.timers.put(g, false)
	g.timer = at
	q.timers.put(g, !at.IsZero())
	if barred {
		q.pass(g, now)
	}
}

// part removes a gang from the waiting gangs of its shape.
func (q *Queue) part(g *gang, now time.Time) {
	s := g.in
	q.shapes.leave(g)
	if s != nil && s.waiting.first() != nil {
		q.arrange(s.waiting.first(), now)
	}
}

// move gives a gang another rank.
func (q *Queue) move(g *gang, rank Rank, now time.Time) {
	g.rank = rank
	q.arrange(g, now)
	if g.in != nil {
		q.arrange(g.in.waiting.first(), now)
	}
	if s := g.tries; s != nil && s.waiting.first() != nil && s.waiting.first().rank.Compare(rank) < 0 {
		q.pass(g, now) // that gang is ahead now, and is tried instead
	}
}

// barred returns the time until which a debt or failed bindings keep a gang from having a cycle.
func (q *Queue) barred(g *gang) time.Time {
	return times.Later(g.unboundUntil, q.debts.of(g))
}

// slow returns the time until which a gang has no cycle because its last cycle took long and found no place, zero for
// other gangs. Gangs of the same shape wait meanwhile, because their cycles would take long, too.
func (q *Queue) slow(g *gang) time.Time {
	if !g.slow {
		return time.Time{}
	}
	return q.slowUntil
}

// mayBegin reports whether neither barred nor slow keeps a gang from having a cycle.
func (q *Queue) mayBegin(g *gang, now time.Time) bool {
	return !q.barred(g).After(now) && !q.slow(g).After(now)
}

// leave takes a gang out of the queue. If the gang was to be tried on behalf of its shape, the next gang of the shape
// is tried.
func (q *Queue) leave(g *gang, now time.Time) {
	q.part(g, now)
	q.end(g)
	g.state = out
	q.arrange(g, now)
	q.pass(g, now)
}

// pass records that a gang is no longer to be tried on behalf of a shape, and tries the next gang of the shape.
func (q *Queue) pass(g *gang, now time.Time) {
	if s := g.tries; s != nil {
		g.tries, s.tried = nil, nil
		q.try(s, now)
	}
}
