// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package line

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Line is the gangs that wait, and who of them is next. It is not safe for concurrent use.
type Line struct {
	gangs map[dialect.Key]*gang
	// due may have a turn now; early are in their back-off, and may have one before a gang
	// behind them has.
	due, early ordered
	// hopeful may be helped: the first of them is.
	hopeful ordered
	timers  ordered
	shapes  shapes
	debts   Debts
	// slowUntil is until when no gang has a turn whose last turn was long and in vain.
	slowUntil time.Time
	// turn is the gang that has its turn, nil for none, and missed is what has happened
	// meanwhile.
	turn   *gang
	missed missed
	// wasEarly says that the last turn was one in a back-off.
	wasEarly bool
}

// New makes a line in which nobody waits.
func New() *Line {
	return &Line{
		gangs: make(map[dialect.Key]*gang),
		due:   byRank(slotDue), early: byRank(slotEarly), timers: byTime(slotTimer),
		hopeful: byRank(slotHopeful),
		shapes:  newShapes(), debts: make(Debts),
	}
}

// Enter has a gang be ready: it is new in line, or something has changed that concerns it
// alone. Lacks says that it waits for its minimum, and not just for more members.
func (l *Line) Enter(rank Rank, lacks bool, now time.Time) {
	g := l.gangs[rank.Key]
	if g == nil {
		g = &gang{}
		l.gangs[rank.Key] = g
	}
	g.lacks = lacks
	if g.state == out {
		g.state = ready
	}
	l.move(g, rank, now)
	l.wake(g, now)
}

// Rerank gives a gang another place in line. If it moves forward it is to be ready: there may
// be room that is held back for those that were ahead of it.
func (l *Line) Rerank(rank Rank, now time.Time) {
	g := l.gangs[rank.Key]
	if g == nil {
		return
	}
	forward := rank.Compare(g.rank) < 0
	l.move(g, rank, now)
	if forward && g.state != out {
		l.wake(g, now)
	}
}

// Wake has a gang be ready if it is in line.
func (l *Line) Wake(key dialect.Key, now time.Time) {
	if g := l.gangs[key]; g != nil && g.state != out {
		l.wake(g, now)
	}
}

// Leave takes a gang out of line. Its back-off goes on.
func (l *Line) Leave(key dialect.Key, now time.Time) {
	if g := l.gangs[key]; g != nil {
		l.leave(g, now)
	}
}

// Forget takes a gang out of line for good.
func (l *Line) Forget(key dialect.Key, now time.Time) {
	if g := l.gangs[key]; g != nil {
		l.leave(g, now)
		delete(l.gangs, key)
	}
}

// Next is the gang that is to have its turn now, false if there is none.
func (l *Line) Next(now time.Time) (Rank, bool) {
	l.tick(now)
	first := l.due.first()
	for first != nil && !l.mayBegin(first, now) {
		l.arrange(first, now) // its namespace got into debt since, or another turn was long
		first = l.due.first()
	}
	if first == nil {
		return Rank{}, false
	}
	for ahead := l.early.first(); !l.wasEarly && ahead != nil && ahead.rank.Compare(first.rank) < 0; ahead = l.early.first() {
		if l.mayBegin(ahead, now) {
			return ahead.rank, true
		}
		l.arrange(ahead, now)
	}
	return first.rank, true
}

// DueSince is since when the gang is due that Next names, or the one behind it before which
// it has a turn in its back-off. It is zero if there is none.
func (l *Line) DueSince() time.Time {
	if first := l.due.first(); first != nil {
		return first.dueSince
	}
	return time.Time{}
}

// Until is when Next is to be asked again if nothing happens before; zero for never.
func (l *Line) Until() time.Time {
	if first := l.timers.first(); first != nil {
		return first.timer
	}
	return time.Time{}
}

// Begin begins the turn of a gang, which Next has named. Since is since when it waits, as
// far as that is known from elsewhere: now if it is not.
func (l *Line) Begin(key dialect.Key, since, now time.Time) {
	g := l.gangs[key]
	if g == nil || g.state == out {
		return
	}
	if l.wasEarly = g.state == ready && g.notBefore.After(now); l.wasEarly {
		g.early = now.Add(g.initial)
	}
	if since.IsZero() || since.After(now) {
		since = now // what others have stored may be anything
	}
	if g.since.IsZero() || since.Before(g.since) {
		g.since = since
	}
	if other := l.turn; other != nil {
		// Nobody has told its outcome. It must not wait for that for ever.
		l.end(other)
		other.state = ready
		l.arrange(other, now)
	}
	l.part(g, now)
	g.state, g.again, l.turn = turning, time.Time{}, g
	g.hadTurn = true
	l.arrange(g, now)
}

// end ends the turn of a gang if it has it.
func (l *Line) end(g *gang) {
	if l.turn == g {
		l.turn, l.missed, g.woken = nil, missed{}, false
	}
}

// Happened tells the line of an event in the cluster.
func (l *Line) Happened(event Event, now time.Time) {
	if l.turn != nil && l.turn.rank.Key != event.By {
		l.missed.add(event)
	}
	for _, s := range l.shapes.helpedBy(&event) {
		l.try(s, now)
	}
}

// Listens says whether an event of a kind could concern anybody.
func (l *Line) Listens(kind EventKind) bool {
	return l.turn != nil || l.shapes.listens(kind)
}

// try has the first gang of a shape be ready, on behalf of all.
func (l *Line) try(s *shape, now time.Time) {
	for s.tried == nil {
		g := s.waiting.first()
		if g == nil {
			return
		}
		l.part(g, now)
		g.state, g.notBefore = ready, s.notBefore
		if !l.barred(g).After(now) {
			s.tried, g.tries = g, s
		} // else the others would have to wait with it
		l.arrange(g, now)
	}
}

// wake has a gang be ready, or ready after its turn.
func (l *Line) wake(g *gang, now time.Time) {
	switch g.state {
	case turning:
		g.woken = true
	case refused:
		l.part(g, now)
		g.state = ready
	}
	l.arrange(g, now)
}

// tick makes those ready whose time has come.
func (l *Line) tick(now time.Time) {
	for g := l.timers.first(); g != nil && !g.timer.After(now); g = l.timers.first() {
		if s := g.in; s != nil && s.waiting.first() == g && !s.idle.After(now) {
			s.idle = now.Add(idleAfter)
			l.try(s, now)
		}
		if g.state == refused && !g.again.IsZero() && !g.again.After(now) {
			g.again = time.Time{}
			l.wake(g, now)
		}
		l.arrange(g, now)
	}
}

// arrange puts a gang into the orders to which it belongs. One that is barred tries nothing
// on behalf of others.
func (l *Line) arrange(g *gang, now time.Time) {
	l.shapes.reorder(g)
	var due, early, barred bool
	var at time.Time
	switch g.state {
	case ready:
		switch until := l.barred(g); {
		case until.After(now):
			barred, at = true, until
		case l.slow(g).After(now):
			at = l.slow(g)
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
	l.due.put(g, due)
	l.early.put(g, early)
	l.hopeful.put(g, hopeful)
	// The heap must not see another key of what is in it.
	l.timers.put(g, false)
	g.timer = at
	l.timers.put(g, !at.IsZero())
	if barred {
		l.pass(g, now)
	}
}

// part has a gang wait with its shape no more. Another one may be the first now.
func (l *Line) part(g *gang, now time.Time) {
	s := g.in
	l.shapes.leave(g)
	if s != nil && s.waiting.first() != nil {
		l.arrange(s.waiting.first(), now)
	}
}

// move gives a gang another place in line, and among those with which it waits.
func (l *Line) move(g *gang, rank Rank, now time.Time) {
	g.rank = rank
	l.arrange(g, now)
	if g.in != nil {
		l.arrange(g.in.waiting.first(), now)
	}
	if s := g.tries; s != nil && s.waiting.first() != nil && s.waiting.first().rank.Compare(rank) < 0 {
		l.pass(g, now) // the one ahead of it now is to try
	}
}

// barred is until when a gang has no turn whatever happens, and whoever is behind it.
func (l *Line) barred(g *gang) time.Time {
	return times.Later(g.unboundUntil, l.debts.of(g))
}

// slow is until when a gang has no turn because its last turn was long and in vain, zero for other gangs. The gangs that are like
// it wait with it: their turns would be long, too.
func (l *Line) slow(g *gang) time.Time {
	if !g.slow {
		return time.Time{}
	}
	return l.slowUntil
}

// mayBegin says whether neither a bar nor its long turns keep a gang from having a turn.
func (l *Line) mayBegin(g *gang, now time.Time) bool {
	return !l.barred(g).After(now) && !l.slow(g).After(now)
}

// leave takes a gang out of line, and has the next one of its shape tried if it was its turn
// to show whether there is room.
func (l *Line) leave(g *gang, now time.Time) {
	l.part(g, now)
	l.end(g)
	g.state = out
	l.arrange(g, now)
	l.pass(g, now)
}

// pass has the next gang of the shape tried for which a gang was tried.
func (l *Line) pass(g *gang, now time.Time) {
	if s := g.tries; s != nil {
		g.tries, s.tried = nil, nil
		l.try(s, now)
	}
}
