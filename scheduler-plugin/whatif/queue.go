// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Queue is the waiting gangs, in the order in which they are tried.
type Queue struct {
	snapshot *Snapshot
	gangs    []*gang
	expected map[dialect.Key]Expected
}

// QueueOf returns the queue of a Snapshot.
func QueueOf(s *Snapshot) Queue {
	all := gangs(s)
	return Queue{s, inOrder(all), expectedStarts(s, all, nil)}
}

// Order returns the queue of a Snapshot as one user may see it; see Queue.SeenBy.
func Order(s *Snapshot, mayRead func(key dialect.Key) bool) answers.Queue {
	return QueueOf(s).SeenBy(mayRead)
}

// SeenBy returns the queue as one user may see it. mayRead reports whether the user may read a gang. Other gangs are
// only counted.
func (q Queue) SeenBy(mayRead func(key dialect.Key) bool) answers.Queue {
	s := q.snapshot
	answer := answers.Queue{Gangs: []answers.Waiting{}, Unknown: s.Lacks}
	for i, g := range q.gangs {
		key := g.group.Key
		if len(answer.Gangs) == answers.MaxQueue || !mayRead(key) {
			answer.Others++
			continue
		}
		waiting := answers.Waiting{Rank: i + 1, Kind: key.Dialect.Kind().GroupKind().String(), Namespace: key.Namespace, Name: key.Name, Priority: g.rank.Priority, Created: g.rank.Created,
			Members: len(g.waiting), Minimum: int(g.group.Spec.Minimum.Members)}
		reason, message := said(s, g)
		waiting.Reason = cmp.Or(message, reason)
		waiting.ExpectedStart = tellStart(s, g, q.expected, mayRead)
		answer.Gangs = append(answer.Gangs, waiting)
	}
	return answer
}

// said returns the reason and message with which the scheduler last said why a gang is not placed. Both are "" if it
// has said nothing.
func said(s *Snapshot, g *gang) (reason, message string) {
	for _, c := range g.group.Conditions {
		if c.Type == schedulingv1alpha1.ConditionUnschedulable && c.Status == metav1.ConditionTrue {
			reason, message = c.Reason, clean(c.Message)
		}
	}
	return reason, message
}

// inOrder returns the gangs in the queue, in order.
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
