// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// shape is a set of gangs that would be refused for the same reason. A gang that can't be compared with others has a
// shape of its own.
type shape struct {
	name    string // "" for a shape of one gang
	refusal Refusal
	// by is the rank of the gang that was planned and refused last. A gang ahead of this rank may find room
	// nevertheless, because it need not respect the reservations of gangs between the two.
	by Rank
	// waiting has the refused gangs, by rank. byRuns has the same gangs by run time.
	waiting, byRuns ordered
	// gained counts the members that could have found room since.
	gained int
	// tried is the gang that is planned next on behalf of all gangs of the shape, nil for none.
	tried *gang
	// notBefore is the end of the back-off that the gangs share. Its length follows from failures, a number of refusals
	// in a row. This is the number of the gang with the fewest refusals, so that no gang waits longer than by its own
	// refusals.
	notBefore time.Time
	failures  int
	// terms are the back-off times of the gang that was refused last.
	terms Terms
	// idle is when the first waiting gang is tried even if nothing happens.
	idle time.Time
}

// shapes has all shapes with waiting gangs.
type shapes struct {
	named map[string]*shape
	// all has all shapes. regarding has those with Need.RegardsOthers.
	all, regarding map[*shape]bool
}

func newShapes() shapes {
	return shapes{named: make(map[string]*shape), all: make(map[*shape]bool), regarding: make(map[*shape]bool)}
}

// refused records that a gang was refused, and returns the gang's shape: the gang waits there with all gangs that would
// be refused for the same reason. If a gang ahead was refused with this shape, its refusal is kept instead. `gained` is
// the number of members for which room has become free since the gang's cycle began.
func (ss *shapes) refused(g *gang, why Refusal, terms Terms, gained int, now time.Time) *shape {
	s := ss.named[why.Shape]
	if why.Shape == "" || s == nil {
		s = &shape{name: why.Shape, waiting: byRank(slotShape), byRuns: byRunTime(slotRuns), failures: g.failures}
	} else if s.tried == nil && s.by.Compare(g.rank) < 0 {
		return s // keep the refusal of the gang ahead: less is reserved from that gang
	}
	if other := s.tried; other != nil && g.rank.Compare(other.rank) < 0 {
		s.tried, other.tries = nil, nil // the refusal of this gang answers for the gang behind
	}
	s.by, s.refusal, s.gained, s.terms = g.rank, why, gained, terms
	s.refusedAgain(g, now)
	s.idle = now.Add(idleAfter)
	return s
}

// refusedAgain starts the next back-off after a gang of the shape was planned and refused.
func (s *shape) refusedAgain(g *gang, now time.Time) {
	s.failures = min(g.failures, s.failures+1)
	s.notBefore = now.Add(backOff(s.failures, s.terms.Initial, s.terms.Longest))
}

// spare shortens the shape's back-off if the gang g, which joins the shape, has been refused less often than the
// others.
func (s *shape) spare(g *gang, now time.Time) {
	failures := g.failures + g.alike
	if failures >= s.failures {
		return
	}
	s.failures = failures
	if end := now.Add(backOff(failures, s.terms.Initial, s.terms.Longest)); end.Before(s.notBefore) {
		s.notBefore = end
	}
}

// closed returns the named shape if a gang of the shape ahead of a rank was refused, and nothing that may help has
// happened since. Otherwise it returns nil.
func (ss *shapes) closed(name string, rank Rank) *shape {
	s := ss.named[name]
	if name == "" || s == nil || s.tried != nil || s.by.Compare(rank) >= 0 {
		return nil
	}
	return s
}

// join adds a gang to the waiting gangs of a shape.
func (ss *shapes) join(g *gang, s *shape) {
	ss.leave(g)
	g.in = s
	s.waiting.put(g, true)
	s.byRuns.put(g, true)
	ss.all[s] = true
	if s.name != "" {
		ss.named[s.name] = s
	}
	if s.refusal.Need.RegardsOthers {
		ss.regarding[s] = true
	} else {
		delete(ss.regarding, s)
	}
}

// leave removes a gang from the waiting gangs of its shape. If no gang of the shape waits any more, it removes the
// shape.
func (ss *shapes) leave(g *gang) {
	s := g.in
	if s == nil {
		return
	}
	g.in = nil
	s.waiting.put(g, false)
	s.byRuns.put(g, false)
	if s.waiting.first() == nil {
		delete(ss.all, s)
		delete(ss.regarding, s)
		delete(ss.named, s.name)
	}
}

// reorder moves a gang to its present place among the waiting gangs of its shape.
func (ss *shapes) reorder(g *gang) {
	if g.in != nil {
		g.in.waiting.put(g, true)
	}
}

// helpedBy returns the shapes whose gangs an event may help. It leaves out shapes of which one gang is being tried
// already.
func (ss *shapes) helpedBy(event *Event) []*shape {
	among := ss.all
	if event.Kind == PodPlaced || event.Kind == NodeGone {
		among = ss.regarding
	}
	var helped []*shape
	for s := range among {
		if s.tried == nil && s.waiting.first().rank.Key != event.By && s.refusal.Need.helps(event, &s.gained) {
			helped = append(helped, s)
		}
	}
	return helped
}

// listens reports whether events of a kind could help a shape.
func (ss *shapes) listens(kind EventKind) bool {
	if kind == PodPlaced || kind == NodeGone {
		return len(ss.regarding) > 0
	}
	return len(ss.all) > 0
}
