// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"slices"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Queue is the gangs that wait, the one that is next first.
type Queue struct {
	snapshot *Snapshot
	gangs    []*gang
}

// QueueOf puts the gangs of a Snapshot in order.
func QueueOf(s *Snapshot) Queue { return Queue{s, inOrder(gangs(s))} }

// Order is the gangs of a Snapshot that wait, as somebody sees them: see SeenBy.
func Order(s *Snapshot, mayRead func(key dialect.Key) bool) answers.Line {
	return QueueOf(s).SeenBy(mayRead)
}

// SeenBy is the queue as somebody sees it. MayRead says which gangs he may know; others are counted.
func (q Queue) SeenBy(mayRead func(key dialect.Key) bool) answers.Line {
	s := q.snapshot
	answer := answers.Line{Gangs: []answers.Waiting{}, Unknown: s.unknown()}
	for i, g := range q.gangs {
		key := g.group.Key
		if len(answer.Gangs) == answers.MaxLine || !mayRead(key) {
			answer.Others++
			continue
		}
		waiting := answers.Waiting{Rank: i + 1, Kind: key.Dialect.Kind().GroupKind().String(), Namespace: key.Namespace, Name: key.Name, Priority: g.rank.Priority, Created: g.rank.Created,
			Members: len(g.waiting), Minimum: int(g.group.Spec.Minimum.Members), Holds: s.holdsFor(key)}
		known := s.Known[key]
		if waiting.Reason = known.Refusal; known.BackOffUntil.After(s.Now) {
			waiting.BackOffUntil = &known.BackOffUntil
		}
		answer.Gangs = append(answer.Gangs, waiting)
	}
	return answer
}

// inOrder are the gangs in line.
func inOrder(all map[dialect.Key]*gang) []*gang {
	var waiting []*gang
	for _, g := range all {
		if g.isInLine() {
			waiting = append(waiting, g)
		}
	}
	slices.SortFunc(waiting, func(a, b *gang) int { return a.rank.Compare(b.rank) })
	return waiting
}
