// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// countersInterval is the shortest time between two writes of the status of a group of another API if only counters
// change. Each write wakes the group's owner.
const countersInterval = 10 * time.Second

// firstTurn is how long a new gang that could be placed gets no status while it waits for its first cycle. Most gangs
// are placed by then: one write instead of two.
const firstTurn = 5 * time.Second

// finalGrace is how long a PodGroup must be known before it gets a final phase. PodGroups and Pods come by separate
// watches, so Pods that were deleted before the PodGroup was created may still be seen.
const finalGrace = 2 * time.Second

// StatusOf returns the status to write for a group of another API, nil for none. conditions are the conditions about to
// be written, nil if they stay. again is after what time to ask again, 0 for not before something changes.
func StatusOf(g *Gang, now time.Time, conditions []schedulingv1alpha1.PodGroupCondition) (status *dialect.Status, again time.Duration) {
	if g.Group == nil || g.Group.Status == nil || g.Theirs {
		return nil, 0
	}
	before := g.Record.StatusOf(g.Group, g.Foreign)
	isNews := conditions != nil
	if !isNews {
		conditions = g.Record.ConditionsOf(g.Group)
	}
	v, certain, _ := g.verdictAt(now)
	next := g.Group.NextStatus(*before, dialect.Facts{Pods: g.Census, Member: g.Member, Conditions: conditions,
		Lacks: certain && !v.scheduled || !certain && lacksStill(g, conditions), Undecided: !certain, Preempted: g.Preempted, Placed: g.Group.HeldBy(g.Bound), Now: now})
	if next.SaysTheSameAs(before) {
		return nil, 0
	}
	if left := finalGrace - now.Sub(g.GroupSeen); left > 0 && next.IsFinal(g.Key.Dialect) {
		return nil, left
	}
	if left := firstTurn - now.Sub(g.Seen); left > 0 && awaitsFirstTurn(g, before, certain) {
		return nil, left
	}
	isNews = isNews && g.Key.Dialect.KeepsConditions() || next.Phase != before.Phase || next.Native != nil
	if left := countersInterval - now.Sub(g.Record.StatusAt); !isNews && left > 0 {
		return nil, left
	}
	return &next, 0
}

// lacksStill reports whether the gang has lost members according to the conditions, and no member waits to replace
// them. Other members may begin to run meanwhile.
func lacksStill(g *Gang, conditions []schedulingv1alpha1.PodGroupCondition) bool {
	c := ConditionOf(conditions, schedulingv1alpha1.ConditionUnschedulable)
	return c != nil && c.Status == metav1.ConditionTrue && WasScheduled(conditions) && g.Waiting.Total == 0 && !g.Group.HeldBy(g.Placed)
}

// awaitsFirstTurn reports whether the gang could be placed and waits for its first cycle: its group has had no phase
// yet, or only Pending.
func awaitsFirstTurn(g *Gang, before *dialect.Status, certain bool) bool {
	isYoung := before.Native == nil && (before.Phase == "" || before.Phase == dialect.PhasePending)
	return isYoung && !certain && g.Group.HeldBy(g.Placed, g.Waiting)
}
