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

// Queue is the gangs that wait, the one that is next first.
type Queue struct {
	snapshot *Snapshot
	gangs    []*gang
	expected map[dialect.Key]Expected
}

// QueueOf puts the gangs of a Snapshot in order.
func QueueOf(s *Snapshot) Queue {
	all := gangs(s)
	return Queue{s, inOrder(all), expectedStarts(s, all, nil)}
}

// Order is the gangs of a Snapshot that wait, as somebody sees them: see SeenBy.
func Order(s *Snapshot, mayRead func(key dialect.Key) bool) answers.Queue {
	return QueueOf(s).SeenBy(mayRead)
}

// SeenBy is the queue as somebody sees it. MayRead says which gangs he may know; others are counted.
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

// said is what the scheduler has said last of why a gang is not placed, with the reason of its condition if that is where
// it stands; empty for nothing.
func said(s *Snapshot, g *gang) (reason, message string) {
	for _, c := range g.group.Conditions {
		if c.Type == schedulingv1alpha1.ConditionUnschedulable && c.Status == metav1.ConditionTrue {
			reason, message = c.Reason, clean(c.Message)
		}
	}
	return reason, message
}

// inOrder are the gangs in the queue.
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
