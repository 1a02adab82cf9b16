// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
