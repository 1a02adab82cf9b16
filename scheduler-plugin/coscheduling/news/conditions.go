// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// messageInterval is the shortest time between two writes of a condition if only its message has changed. Without a
// limit, each Pod that ends would cause a write, because the message has the missing amount.
const messageInterval = time.Minute

// longBackOff is from which length on the condition says when a back-off ends.
const longBackOff = time.Minute

// membersGrace is how long after a group's creation no condition says that members are missing. The creator of a group
// creates the members next.
const membersGrace = 2 * time.Second

// verdict is the content of the conditions.
type verdict struct {
	scheduled       bool
	reason, message string
}

// News returns the conditions to write now, nil for none. again is the time after which to call News again; 0 means not
// before something changes. If the status of a condition changes, the condition gets the transitionID.
func (g *Gang) News(now time.Time, transitionID string) (conditions []schedulingv1alpha1.PodGroupCondition, again time.Duration) {
	if g.Group == nil || g.Theirs {
		return nil, 0
	}
	v, ok, again := g.verdictAt(now)
	if ok {
		if left := g.BackOff.Sub(now); left > longBackOff && !v.scheduled {
			v.message += "; it is tried again at " + g.BackOff.UTC().Format(time.RFC3339) + ", or when its group or its Pods change"
		}
		var hint string
		if hint, again = likelyHint(g, now); hint != "" && again == 0 {
			v.message += "; " + likelyCause + hint
		}
	} else if v, ok = verdictOf(g.Record.Conditions); !ok || again > 0 { // the last report stays
		return nil, again
	}
	before := g.Record.standing(g.Group)
	change := v.compare(before)
	if change != changeNone && v.compare(g.Record.Conditions) == changeNone { // another client has changed the conditions
		if left := g.Record.repairIn(now); left > 0 {
			return nil, left
		}
	}
	switch change {
	case changeNone:
		return nil, again
	case changeMessage:
		if v.scheduled {
			return nil, 0 // this group's API keeps no message
		}
		if left := messageInterval - now.Sub(g.Record.At); left > 0 {
			return nil, left
		}
	}
	return v.conditions(before, transitionID, metav1.NewTime(now), g.Group.Generation), again
}

// verdictAt returns the verdict at a time, false for none. again is the time after which to call verdictAt again; 0
// means not before something changes.
func (g *Gang) verdictAt(now time.Time) (v verdict, ok bool, again time.Duration) {
	v, ok = g.verdict()
	if ok && v.reason == schedulingv1alpha1.ReasonNotEnoughTasks {
		// The creator of a group creates the members next.
		if left := membersGrace - now.Sub(g.Group.Created); left > 0 {
			return verdict{}, false, left
		}
	}
	if !ok && g.NextSlow.After(now) && g.Group.HeldBy(g.Placed) {
		return v, false, g.NextSlow.Sub(now)
	}
	return v, ok, 0
}

// verdict returns what the gang's conditions should say. The result is false if the conditions are to stay as they are,
// because the gang is about to be planned or bound, or is ending. The gang must have a PodGroup.
func (g *Gang) verdict() (verdict, bool) {
	if g.Group.HeldBy(g.Bound) {
		return verdict{scheduled: true, reason: schedulingv1alpha1.ReasonScheduled, message: "at least minMember members are bound"}, true
	}
	if g.Group.HeldBy(g.Placed) {
		if slow := g.slowBinding(); slow != "" {
			return verdict{reason: schedulingv1alpha1.ReasonBinding, message: slow}, true
		}
		return verdict{}, false // the gang is being bound
	}
	if g.Group.IsHalted() {
		return g.halted()
	}
	ran := WasScheduled(g.Record.ConditionsOf(g.Group))
	if ran && g.Waiting.Total == 0 {
		// The members end, or their replacements are still to come.
		return verdict{}, false
	}
	v := verdict{}
	if v.reason, v.message = g.lacks(); v.reason == "" {
		return verdict{}, false
	}
	if ran {
		v.reason = schedulingv1alpha1.ReasonPodDeleted
		if g.Failed > g.Deleted {
			v.reason = schedulingv1alpha1.ReasonPodFailed
		}
	}
	return v, true
}

// halted returns the verdict on a gang that is not to be placed, as its group's Halt says. The result is false for a
// deleted group without waiting Pods.
func (g *Gang) halted() (verdict, bool) {
	halt := g.Group.Spec.Halt
	return verdict{reason: halt.Reason, message: halt.Message}, halt.Reason != dialect.ReasonDeleted || g.Waiting.Total > 0
}

// complete reports whether at least one member waits, the minimum would hold with all waiting members placed, and the
// group may be placed.
func (g *Gang) complete() bool {
	return g.Group != nil && !g.Group.IsHalted() && g.Waiting.Total > 0 && g.Group.HeldBy(g.Placed, g.Waiting)
}

// The metric of waiting gangs has two reasons more than the conditions. Preempting: the gang's victims are ending.
// Reserved: resources are reserved for the gang until running work there has ended by itself.
const (
	Preempting = "Preempting"
	Reserved   = "Reserved"
)

// WaitsFor returns the reason why members wait, for the metric of waiting gangs. It is "" if no member waits, or if the
// gang is about to be planned.
func (g *Gang) WaitsFor() string {
	if g.Group == nil || g.Waiting.Total == 0 {
		return ""
	}
	if g.Kept != "" && g.complete() {
		return g.Kept
	}
	reason, _ := g.lacks()
	return reason
}

// lacks returns what the gang lacks, as reason and message of a condition. Both are "" if the gang is about to be
// planned.
func (g *Gang) lacks() (reason, message string) {
	switch {
	case g.Group.IsHalted():
		return g.Group.Spec.Halt.Reason, g.Group.Spec.Halt.Message
	case g.Group.Spec.Loose:
		return "", "" // each member waits on its own, and has its own condition
	case !g.complete():
		return schedulingv1alpha1.ReasonNotEnoughTasks, missing(&g.Group.Spec.Minimum, g.Placed.Plus(g.Waiting)) + g.elsewhere()
	case g.Refusal != nil && g.Refusal.Unready:
		return schedulingv1alpha1.ReasonNotEnoughTasks, g.Refusal.Message
	case g.Refusal != nil:
		return schedulingv1alpha1.ReasonNotEnoughResources, g.Refusal.Message
	case g.Unbound != "":
		return schedulingv1alpha1.ReasonBindingFailed, g.Unbound
	}
	return "", ""
}

// maxRolesTold bounds how many roles a message lists with what they lack.
const maxRolesTold = 10

// missing returns the message about missing members.
func missing(least *podgroup.Minimum, have podgroup.Tally) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d of at least %d members exist", have.Total, least.Members)
	told := 0
	for _, role := range slices.Sorted(maps.Keys(least.Roles)) {
		n := least.Roles[role]
		if have.Roles[role] >= n {
			continue
		}
		if told++; told <= maxRolesTold {
			fmt.Fprintf(&text, ", %d of at least %d in role %s", have.Roles[role], n, role)
		}
	}
	if told > maxRolesTold {
		fmt.Fprintf(&text, ", and %d more roles lack members", told-maxRolesTold)
	}
	return text.String()
}

// maxSchedulersTold bounds how many other schedulers a message names.
const maxSchedulersTold = 3

// elsewhere returns the end of a message, about members that wait for other schedulers. It is "" if there are no such
// members.
func (g *Gang) elsewhere() string {
	var text strings.Builder
	for i, name := range slices.Sorted(maps.Keys(g.Unserved)) {
		if i == maxSchedulersTold {
			fmt.Fprintf(&text, ", and others for %d more schedulers", len(g.Unserved)-i)
			break
		}
		fmt.Fprintf(&text, "; %d more wait for the scheduler %s, which is not served here", g.Unserved[name], name)
	}
	return text.String()
}

// WasScheduled reports whether a group was ever placed, according to its conditions. Either the group is Scheduled, or
// the reason why it is not is that it lost a member.
func WasScheduled(conditions []schedulingv1alpha1.PodGroupCondition) bool {
	for _, c := range conditions {
		if c.Type == schedulingv1alpha1.ConditionScheduled && c.Status == metav1.ConditionTrue {
			return true
		}
		if c.Reason == schedulingv1alpha1.ReasonPodDeleted || c.Reason == schedulingv1alpha1.ReasonPodFailed {
			return true
		}
	}
	return false
}

// LostSince returns the time at which a group lost members that it now lacks, according to its condition Scheduled. It
// is zero if the condition does not say that.
func LostSince(conditions []schedulingv1alpha1.PodGroupCondition) time.Time {
	c := ConditionOf(conditions, schedulingv1alpha1.ConditionScheduled)
	if c == nil || c.Status == metav1.ConditionTrue || c.Reason != schedulingv1alpha1.ReasonPodDeleted && c.Reason != schedulingv1alpha1.ReasonPodFailed {
		return time.Time{}
	}
	return c.LastTransitionTime.Time
}

// NoRoomSince returns since when a group has found no room, according to its conditions; zero if they do not say so. If
// the group has lost members, the result may be too early: at first the group may have waited for replacements.
func NoRoomSince(conditions []schedulingv1alpha1.PodGroupCondition) time.Time {
	c := ConditionOf(conditions, schedulingv1alpha1.ConditionUnschedulable)
	if c == nil || c.Status != metav1.ConditionTrue {
		return time.Time{}
	}
	switch c.Reason {
	case schedulingv1alpha1.ReasonNotEnoughResources, schedulingv1alpha1.ReasonPodDeleted, schedulingv1alpha1.ReasonPodFailed:
		return c.LastTransitionTime.Time
	default:
		return time.Time{}
	}
}

// change is how much a verdict differs from the present conditions.
type change int

const (
	changeNone change = iota
	// changeMessage: same status and reason.
	changeMessage
	changeAll
)

// compare returns how much v differs from conditions.
func (v verdict) compare(conditions []schedulingv1alpha1.PodGroupCondition) change {
	found := change(changeNone)
	for _, want := range v.conditions(conditions, "", metav1.Time{}, 0) {
		have := ConditionOf(conditions, want.Type)
		switch {
		case have == nil || have.Status != want.Status || have.Reason != want.Reason:
			return changeAll
		case have.Message != want.Message:
			found = changeMessage
		}
	}
	return found
}

// Same reports whether conditions are equal, apart from times and IDs.
func Same(some, others []schedulingv1alpha1.PodGroupCondition) bool {
	return slices.EqualFunc(some, others, func(a, b schedulingv1alpha1.PodGroupCondition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
	})
}

// verdictOf returns the verdict that conditions express, false if there are none.
func verdictOf(conditions []schedulingv1alpha1.PodGroupCondition) (verdict, bool) {
	c := ConditionOf(conditions, schedulingv1alpha1.ConditionScheduled)
	if c == nil {
		return verdict{}, false
	}
	return verdict{scheduled: c.Status == metav1.ConditionTrue, reason: c.Reason, message: c.Message}, true
}

// conditions returns the conditions that express v. If the status of a condition differs from that in `before`, the
// condition gets transitionID and the time `now`. Otherwise the ID and time stay.
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
		if old := ConditionOf(before, c.Type); old != nil && old.Status == c.Status {
			c.TransitionID, c.LastTransitionTime = old.TransitionID, old.LastTransitionTime
		}
	}
	return after
}

// ConditionOf returns the condition of a type, nil if there is none.
func ConditionOf(conditions []schedulingv1alpha1.PodGroupCondition, kind string) *schedulingv1alpha1.PodGroupCondition {
	i := slices.IndexFunc(conditions, func(c schedulingv1alpha1.PodGroupCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

// Event is the content of an event on a group or a Pod. Kind is Normal or Warning.
type Event struct {
	Kind, Reason, Message string
}

// EventOf returns the event for new conditions. For a PodGroup of Volcano the event uses Volcano's reason and words,
// because its users expect them.
func (g *Gang) EventOf(conditions []schedulingv1alpha1.PodGroupCondition) Event {
	c := ConditionOf(conditions, schedulingv1alpha1.ConditionScheduled)
	scheduled := c.Status == metav1.ConditionTrue
	switch {
	case g.Key.Dialect == dialect.Volcano && scheduled:
		return Event{Kind: corev1.EventTypeNormal, Reason: schedulingv1alpha1.ConditionScheduled, Message: "pod group is ready"}
	case g.Key.Dialect == dialect.Volcano:
		return Event{Kind: corev1.EventTypeWarning, Reason: schedulingv1alpha1.ConditionUnschedulable, Message: fmt.Sprintf(
			"%d/%d tasks in gang unschedulable: %s", max(0, g.Group.Asked-g.Placed.Total), g.Census.Exist, c.Message)}
	case scheduled:
		return Event{Kind: corev1.EventTypeNormal, Reason: c.Reason, Message: c.Message}
	default:
		return Event{Kind: corev1.EventTypeWarning, Reason: c.Reason, Message: c.Message}
	}
}
