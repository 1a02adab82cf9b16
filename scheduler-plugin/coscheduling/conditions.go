// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// messageInterval is how long a condition keeps its message at least when
// nothing but the message changes. The amount that is missing changes with each
// Pod that ends, and a write for each is no news.
const messageInterval = 10 * time.Second

// membersGrace is how old a group is at least when it is said to lack members.
const membersGrace = 2 * time.Second

// conditionState is what was last written to a PodGroup's conditions, and whether an
// event has told that its PriorityClass does not count; see capped.go.
type conditionState struct {
	written    []schedulingv1alpha1.PodGroupCondition
	at         time.Time
	toldCapped bool
}

// verdict is what the conditions are to say.
type verdict struct {
	scheduled       bool
	reason, message string
}

// verdict is what the gang's conditions are to say now. The bool is false if
// that is nothing new: the gang is about to be planned or bound, or is ending. The caller
// holds the lock.
func (t *tracker) verdict(g *gang) (verdict, bool) {
	if g.group == nil {
		return verdict{}, false
	}
	if g.scheduled() {
		return verdict{scheduled: true, reason: schedulingv1alpha1.ReasonScheduled, message: "at least minMember members are bound"}, true
	}
	if podgroup.Holds(&g.group.Spec, g.placed) {
		return verdict{}, false // it is being bound
	}
	ran := g.wasScheduled()
	if ran && g.waiting.Total == 0 {
		// Its members end, or their replacements are still to come.
		return verdict{}, false
	}
	v := verdict{}
	told, refused := t.line.Told(g.key)
	switch {
	case !g.complete():
		v.reason = schedulingv1alpha1.ReasonNotEnoughTasks
		v.message = missing(&g.group.Spec, g.placed.Plus(g.waiting))
	case refused:
		v.reason = schedulingv1alpha1.ReasonNotEnoughResources
		if told.Unready {
			v.reason = schedulingv1alpha1.ReasonNotEnoughTasks
		}
		v.message = told.Message
	case g.bindings.message != "":
		v.reason = schedulingv1alpha1.ReasonBindingFailed
		v.message = g.bindings.message
	default:
		return verdict{}, false
	}
	if ran {
		v.reason = schedulingv1alpha1.ReasonPodDeleted
		if g.failedMembers > g.deletedMembers {
			v.reason = schedulingv1alpha1.ReasonPodFailed
		}
	}
	return v, true
}

// conditions are those that the group has as far as this scheduler knows: its
// own last write, which the watch may not have shown yet, comes first.
func (g *gang) conditions() []schedulingv1alpha1.PodGroupCondition {
	if g.status.written != nil {
		return g.status.written
	}
	return g.group.Status.Conditions
}

// wasScheduled says whether the group was placed once: it is Scheduled now, or
// is not because it lost a member.
func (g *gang) wasScheduled() bool {
	for _, c := range g.conditions() {
		if c.Type == schedulingv1alpha1.ConditionScheduled && c.Status == metav1.ConditionTrue {
			return true
		}
		if c.Reason == schedulingv1alpha1.ReasonPodDeleted || c.Reason == schedulingv1alpha1.ReasonPodFailed {
			return true
		}
	}
	return false
}

// change says how much a verdict differs from the conditions that are there.
type change int

const (
	changeNone change = iota
	// changeMessage: same status and reason.
	changeMessage
	changeAll
)

// compare says how v differs from the conditions.
func (v verdict) compare(conditions []schedulingv1alpha1.PodGroupCondition) change {
	found := change(changeNone)
	for _, want := range v.conditions(conditions, "", metav1.Time{}, 0) {
		have := findCondition(conditions, want.Type)
		switch {
		case have == nil || have.Status != want.Status || have.Reason != want.Reason:
			return changeAll
		case have.Message != want.Message:
			found = changeMessage
		}
	}
	return found
}

// conditions are those that a verdict makes of the ones before it. A condition
// whose status changes gets the new transitionID and time, others keep theirs.
func (v verdict) conditions(before []schedulingv1alpha1.PodGroupCondition, transitionID string, now metav1.Time, generation int64) []schedulingv1alpha1.PodGroupCondition {
	status := func(yes bool) metav1.ConditionStatus {
		if yes {
			return metav1.ConditionTrue
		}
		return metav1.ConditionFalse
	}
	after := []schedulingv1alpha1.PodGroupCondition{
		{Type: schedulingv1alpha1.ConditionScheduled, Status: status(v.scheduled)},
		{Type: schedulingv1alpha1.ConditionUnschedulable, Status: status(!v.scheduled)},
	}
	for i := range after {
		c := &after[i]
		c.Reason, c.Message = v.reason, v.message
		c.TransitionID, c.LastTransitionTime, c.ObservedGeneration = transitionID, now, generation
		if old := findCondition(before, c.Type); old != nil && old.Status == c.Status {
			c.TransitionID, c.LastTransitionTime = old.TransitionID, old.LastTransitionTime
		}
	}
	return after
}

func findCondition(conditions []schedulingv1alpha1.PodGroupCondition, kind string) *schedulingv1alpha1.PodGroupCondition {
	i := slices.IndexFunc(conditions, func(c schedulingv1alpha1.PodGroupCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
