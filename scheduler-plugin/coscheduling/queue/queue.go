// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Queue is the gangs that wait, and who of them is next. It is not safe for concurrent use.
type Queue struct {
	gangs map[dialect.Key]*gang
	// due may have a cycle now; early are in their back-off, and may have one before a gang
	// behind them has.
	due, early ordered
	// hopeful may be helped: the first of them is.
	hopeful ordered
	timers  ordered
	shapes  shapes
	debts   Debts
	// slowUntil is until when no gang has a cycle whose last cycle was long and in vain.
	slowUntil time.Time
	// cycle is the gang that has its cycle, nil for none, and missed is what has happened
	// meanwhile.
	planned *gang
	missed  missed
	// wasEarly says that the last cycle was one in a back-off.
	wasEarly bool
}

// New makes a queue in which nobody waits.
func New() *Queue {
	return &Queue{
		gangs: make(map[dialect.Key]*gang),
		due:   byRank(slotDue), early: byRank(slotEarly), timers: byTime(slotTimer),
		hopeful: byRank(slotHopeful),
		shapes:  newShapes(), debts: make(Debts),
	}
}

// Enter has a gang be ready: it is new in the queue, or something has changed that concerns it
// alone. Lacks says that it waits for its minimum, and not just for more members.
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

// Rerank gives a gang another place in the queue. If it moves forward it is to be ready: there may
// be resources that are reserved for those that were ahead of it.
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

// Wake has a gang be ready if it is in the queue.
func (q *Queue) Wake(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil && g.state != out {
		q.wake(g, now)
	}
}

// Leave takes a gang out of the queue. Its back-off goes on.
func (q *Queue) Leave(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		q.leave(g, now)
	}
}

// Forget takes a gang out of the queue for good.
func (q *Queue) Forget(key dialect.Key, now time.Time) {
	if g := q.gangs[key]; g != nil {
		q.leave(g, now)
		delete(q.gangs, key)
	}
}

// Next is the gang that is to have its cycle now, false if there is none.
func (q *Queue) Next(now time.Time) (Rank, bool) {
	q.tick(now)
	first := q.due.first()
	for first != nil && !q.mayBegin(first, now) {
		q.arrange(first, now) // its namespace got into debt since, or another cycle was long
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

// DueSince is since when the gang is due that Next names, or the one behind it before which
// it has a cycle in its back-off. It is zero if there is none.
func (q *Queue) DueSince() time.Time {
	if first := q.due.first(); first != nil {
		return first.dueSince
	}
	return time.Time{}
}

// Until is when Next is to be asked again if nothing happens before; zero for never.
func (q *Queue) Until() time.Time {
	if first := q.timers.first(); first != nil {
		return first.timer
	}
	return time.Time{}
}

// Begin begins the cycle of a gang, which Next has named. Since is since when it waits, as
// far as that is known from elsewhere: now if it is not.
func (q *Queue) Begin(key dialect.Key, since, now time.Time) {
	g := q.gangs[key]
	if g == nil || g.state == out {
		return
	}
	if q.wasEarly = g.state == ready && g.notBefore.After(now); q.wasEarly {
		g.early = now.Add(g.initial)
	}
	if since.IsZero() || since.After(now) {
		since = now // what others have stored may be anything
	}
	if g.since.IsZero() || since.Before(g.since) {
		g.since = since
	}
	if other := q.planned; other != nil {
		// Nobody has told its outcome. It must not wait for that for ever.
		q.end(other)
		other.state = ready
		q.arrange(other, now)
	}
	q.part(g, now)
	g.state, g.again, q.planned = inCycle, time.Time{}, g
	g.hadTurn = true
	q.arrange(g, now)
}

// end ends the cycle of a gang if it has it.
func (q *Queue) end(g *gang) {
	if q.planned == g {
		q.planned, q.missed, g.woken = nil, missed{}, false
	}
}

// Happened tells the queue of an event in the cluster.
func (q *Queue) Happened(event Event, now time.Time) {
	if q.planned != nil && q.planned.rank.Key != event.By {
		q.missed.add(event)
	}
	for _, s := range q.shapes.helpedBy(&event) {
		q.try(s, now)
	}
}

// Listens says whether an event of a kind could concern anybody.
func (q *Queue) Listens(kind EventKind) bool {
	return q.planned != nil || q.shapes.listens(kind)
}

// try has the first gang of a shape be ready, on behalf of all.
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
		} // else the others would have to wait with it
		q.arrange(g, now)
	}
}

// wake has a gang be ready, or ready after its cycle.
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

// tick makes those ready whose time has come.
func (q *Queue) tick(now time.Time) {
	for g := q.timers.first(); g != nil && !g.timer.After(now); g = q.timers.first() {
		if s := g.in; s != nil && s.waiting.first() == g && !s.idle.After(now) {
			s.idle = now.Add(idleAfter)
			q.try(s, now)
		}
		if g.state == refused && !g.again.IsZero() && !g.again.After(now) {
			g.again = time.Time{}
			q.wake(g, now)
		}
		q.arrange(g, now)
	}
}

// arrange puts a gang into the orders to which it belongs. One that is barred tries nothing
// on behalf of others.
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
	// The heap must not see another key of what is in it.
	q.timers.put(g, false)
	g.timer = at
	q.timers.put(g, !at.IsZero())
	if barred {
		q.pass(g, now)
	}
}

// part has a gang wait with its shape no more. Another one may be the first now.
func (q *Queue) part(g *gang, now time.Time) {
	s := g.in
	q.shapes.leave(g)
	if s != nil && s.waiting.first() != nil {
		q.arrange(s.waiting.first(), now)
	}
}

// move gives a gang another place in the queue, and among those with which it waits.
func (q *Queue) move(g *gang, rank Rank, now time.Time) {
	g.rank = rank
	q.arrange(g, now)
	if g.in != nil {
		q.arrange(g.in.waiting.first(), now)
	}
	if s := g.tries; s != nil && s.waiting.first() != nil && s.waiting.first().rank.Compare(rank) < 0 {
		q.pass(g, now) // the one ahead of it now is to try
	}
}

// barred is until when a gang has no cycle whatever happens, and whoever is behind it.
func (q *Queue) barred(g *gang) time.Time {
	return times.Later(g.unboundUntil, q.debts.of(g))
}

// slow is until when a gang has no cycle because its last cycle was long and in vain, zero for other gangs. The gangs that are like
// it wait with it: their cycles would be long, too.
func (q *Queue) slow(g *gang) time.Time {
	if !g.slow {
		return time.Time{}
	}
	return q.slowUntil
}

// mayBegin says whether neither a bar nor its long cycles keep a gang from having a cycle.
func (q *Queue) mayBegin(g *gang, now time.Time) bool {
	return !q.barred(g).After(now) && !q.slow(g).After(now)
}

// leave takes a gang out of the queue, and has the next one of its shape tried if it was its cycle
// to show whether there is room.
func (q *Queue) leave(g *gang, now time.Time) {
	q.part(g, now)
	q.end(g)
	g.state = out
	q.arrange(g, now)
	q.pass(g, now)
}

// pass has the next gang of the shape tried for which a gang was tried.
func (q *Queue) pass(g *gang, now time.Time) {
	if s := g.tries; s != nil {
		g.tries, s.tried = nil, nil
		q.try(s, now)
	}
}
