// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Event is what an event on a group or a Pod says. Kind is Normal or Warning.
type Event struct {
	Kind, Reason, Message string
}

// EventOf is the event that tells of new conditions, in the words of the group's dialect: those who
// use it look for these.
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

// ReasonSeveralGroups: the Pod names several groups, and is a member of one of them.
const ReasonSeveralGroups = "SeveralPodGroups"

// SeveralGroups are the Pods that are still to be told that they name several groups, and told
// all that will have been then, of those that wait or are ordinary ones.
func (g *Gang) SeveralGroups() (untold []Pod, told map[types.UID]bool) {
	told = make(map[types.UID]bool)
	for _, p := range slices.Concat(g.Pods, g.Ordinary) {
		if g.Group == nil || len(p.Ignored) == 0 {
			continue
		}
		told[p.Pod.UID] = true
		if !g.Record.ToldIgnored[p.Pod.UID] {
			untold = append(untold, p)
		}
	}
	return untold, told
}

// SeveralGroupsEvent is what such a Pod is told.
func (g *Gang) SeveralGroupsEvent(p Pod) Event {
	names := make([]string, len(p.Ignored))
	for i, key := range p.Ignored {
		names[i] = key.Name + key.Dialect.Of()
	}
	return Event{Kind: corev1.EventTypeWarning, Reason: ReasonSeveralGroups, Message: fmt.Sprintf(
		"the Pod names several PodGroups: it is a member of %s%s and of no other, so %s means nothing", g.Key.Name, g.Key.Dialect.Of(), strings.Join(names, ", "))}
}

// Warnings are the events that the group is still to be told.
func (g *Gang) Warnings() []Event {
	if g.Group == nil {
		return nil
	}
	var events []Event
	for _, warning := range g.Group.Warnings {
		if (!g.Theirs || warning.Always) && !slices.Contains(g.Record.Warned, warning.Reason) {
			events = append(events, Event{Kind: corev1.EventTypeWarning, Reason: warning.Reason, Message: warning.Message})
		}
	}
	return events
}
