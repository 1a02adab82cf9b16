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

// Order returns the waiting gangs of a Snapshot, in the order in which they are tried, as one user may see them. mayRead
// reports whether the user may read a gang. Other gangs are only counted.
func Order(s *Snapshot, mayRead func(key dialect.Key) bool) answers.Queue {
	all := gangs(s)
	expected := expectedStarts(s, all, nil)
	answer := answers.Queue{Gangs: []answers.Waiting{}, Unknown: s.Lacks}
	for i, g := range inOrder(all) {
		key := g.group.Key
		if len(answer.Gangs) == answers.MaxQueue || !mayRead(key) {
			answer.Others++
			continue
		}
		waiting := answers.Waiting{Rank: i + 1, Kind: key.Dialect.Kind().GroupKind().String(), Namespace: key.Namespace, Name: key.Name, Priority: g.rank.Priority, Created: g.rank.Created,
			Members: len(g.waiting), Minimum: int(g.group.Spec.Minimum.Members)}
		reason, message := said(s, g)
		waiting.Reason = cmp.Or(message, reason)
		waiting.ExpectedStart = tellStart(s, g, expected, mayRead)
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
