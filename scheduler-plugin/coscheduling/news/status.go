// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// countersInterval is the shortest time between two writes of a status of another API in which only counters change.
// Each write makes the controller of the group's owner work.
const countersInterval = 10 * time.Second

// firstTurn is how long the scheduler writes no status for a new, complete gang that waits for its first cycle. Most
// gangs are placed within this time, so their status is written once instead of twice.
const firstTurn = 5 * time.Second

// finalGrace is how long a PodGroup must be known before it gets a final phase. The reason is that PodGroups and Pods
// come by separate watches: Pods that were deleted before the PodGroup was created may still be in the cache.
const finalGrace = 2 * time.Second

// StatusOf returns the status to write for a group of another API, nil for none. conditions are the conditions about to
// be written, nil if they stay. again is the time after which to call StatusOf again; 0 means not before something
// changes.
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

// lacksStill reports whether, according to the conditions, the gang was scheduled and has lost members, no member waits
// to replace them, and the placed members are still fewer than the minimum. A placed member that begins to run does not
// make the result false.
func lacksStill(g *Gang, conditions []schedulingv1alpha1.PodGroupCondition) bool {
	c := ConditionOf(conditions, schedulingv1alpha1.ConditionUnschedulable)
	return c != nil && c.Status == metav1.ConditionTrue && WasScheduled(conditions) && g.Waiting.Total == 0 && !g.Group.HeldBy(g.Placed)
}

// awaitsFirstTurn reports whether the gang could be placed and waits for its first cycle. One sign of that is that the
// group has no phase yet, or the phase Pending.
func awaitsFirstTurn(g *Gang, before *dialect.Status, certain bool) bool {
	isYoung := before.Native == nil && (before.Phase == "" || before.Phase == dialect.PhasePending)
	return isYoung && !certain && g.Group.HeldBy(g.Placed, g.Waiting)
}
