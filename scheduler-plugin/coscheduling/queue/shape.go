// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import "time"

// shape is what gangs have in common that would be refused in the same way. A gang that is
// like no other has a shape of its own.
type shape struct {
	name    string // empty for one of its own
	refusal Refusal
	// by is the rank of the gang that was refused last. For one that is ahead of it, there may
	// be room all the same: that is reserved for gangs between the two.
	by Rank
	// waiting are the gangs that were refused.
	waiting ordered
	// gained is for how many members there has been room since.
	gained int
	// tried is the gang that is to show whether there is room now, nil for none.
	tried *gang
	// notBefore is the end of the back-off, and failures are the refusals in a row that count
	// for it: those of the gang that was refused the least often. It must not wait longer than it
	// would by itself.
	notBefore time.Time
	failures  int
	// terms are those of the gang that was refused last.
	terms Terms
	// idle is when a gang is to be tried even if nothing happens. It is the first of those
	// that wait that is looked at then.
	idle time.Time
}

// shapes are those with gangs that wait.
type shapes struct {
	named map[string]*shape
	// all are they, and regarding those to which a Pod that is placed may be of help.
	all, regarding map[*shape]bool
}

func newShapes() shapes {
	return shapes{named: make(map[string]*shape), all: make(map[*shape]bool), regarding: make(map[*shape]bool)}
}

// refused is the shape of a gang that was refused, with what is known now. Gained is for how
// many members there has been room since its cycle began.
func (ss *shapes) refused(g *gang, why Refusal, terms Terms, gained int, now time.Time) *shape {
	s := ss.named[why.Shape]
	if why.Shape == "" || s == nil {
		s = &shape{name: why.Shape, waiting: byRank(slotShape), failures: g.failures}
	} else if s.tried == nil && s.by.Compare(g.rank) < 0 {
		return s // The one ahead lacks the least. That this one was planned at all is not the rule.
	}
	if other := s.tried; other != nil && g.rank.Compare(other.rank) < 0 {
		s.tried, other.tries = nil, nil // this one has shown it
	}
	s.by, s.refusal, s.gained, s.terms = g.rank, why, gained, terms
	s.refusedAgain(g, now)
	s.idle = now.Add(idleAfter)
	return s
}

// refusedAgain begins the back-off anew, as a gang of the shape was planned and refused.
func (s *shape) refusedAgain(g *gang, now time.Time) {
	s.failures = min(g.failures, s.failures+1)
	s.notBefore = now.Add(backOff(s.failures, s.terms.Initial, s.terms.Longest))
}

// spare has the back-off end no later than that of a gang would by itself that is refused now.
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

// closed is the shape of a name if a gang of it was refused that is ahead of a rank, and
// nothing has happened since that may help; nil if not.
func (ss *shapes) closed(name string, rank Rank) *shape {
	s := ss.named[name]
	if name == "" || s == nil || s.tried != nil || s.by.Compare(rank) >= 0 {
		return nil
	}
	return s
}

// join has a gang wait with a shape.
func (ss *shapes) join(g *gang, s *shape) {
	ss.leave(g)
	g.in = s
	s.waiting.put(g, true)
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

// leave has a gang wait with its shape no more. A shape with which nobody waits is
// forgotten.
func (ss *shapes) leave(g *gang) {
	s := g.in
	if s == nil {
		return
	}
	g.in = nil
	s.waiting.put(g, false)
	if s.waiting.first() == nil {
		delete(ss.all, s)
		delete(ss.regarding, s)
		delete(ss.named, s.name)
	}
}

// reorder brings a gang to its place among those with which it waits.
func (ss *shapes) reorder(g *gang) {
	if g.in != nil {
		g.in.waiting.put(g, true)
	}
}

// helpedBy are the shapes to which an event may be of help, and of which none is tried yet.
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

// listens says whether an event of a kind could concern a shape.
func (ss *shapes) listens(kind EventKind) bool {
	if kind == PodPlaced || kind == NodeGone {
		return len(ss.regarding) > 0
	}
	return len(ss.all) > 0
}
