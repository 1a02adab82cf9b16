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

// Order is the gangs that wait, the one that is next first. MayRead says of which namespaces the
// asker may know the gangs; those of others are counted.
func Order(s *Snapshot, mayRead func(namespace string) bool) answers.Line {
	answer := answers.Line{Gangs: []answers.Waiting{}, Unknown: s.unknown()}
	for i, g := range inOrder(gangs(s)) {
		key := g.group.Key
		if len(answer.Gangs) == answers.MaxLine || !mayRead(key.Namespace) {
			answer.Others++
			continue
		}
		waiting := answers.Waiting{Rank: i + 1, Namespace: key.Namespace, Name: key.Name, Priority: g.rank.Priority, Created: g.rank.Created,
			Members: len(g.waiting), Minimum: int(g.group.Spec.Minimum.Members), Holds: s.holdsFor(key)}
		known := s.Known[key]
		if waiting.Reason = cmp.Or(clean(known.Refusal), g.said()); known.BackOffUntil.After(s.Now) {
			waiting.BackOffUntil = &known.BackOffUntil
		}
		answer.Gangs = append(answer.Gangs, waiting)
	}
	return answer
}

// said is what the gang's condition says of why it waits, empty if nothing.
func (g *gang) said() string {
	for _, c := range g.group.Conditions {
		if c.Type == schedulingv1alpha1.ConditionUnschedulable && c.Status == metav1.ConditionTrue {
			return cmp.Or(clean(c.Message), c.Reason)
		}
	}
	return ""
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
