// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// A group ranks no higher than its Pods do. Quota and admission say who may have Pods
// of which PriorityClass, and ask nobody about the class of a PodGroup: if that alone
// counted, whoever may create PodGroups could evict anybody.

// reasonCapped is the reason of the event that tells a group so.
const reasonCapped = "PriorityClassCapped"

// capping is what to tell a group whose PriorityClass is worth more than its Pods have,
// once they are there. The group is nil if there is nothing to tell, or it was told.
func (t *tracker) capping(key types.NamespacedName) (group *schedulingv1alpha1.PodGroup, message string) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || g.group == nil || !t.synced || g.status.toldCapped || len(g.priorities) == 0 {
		return nil, ""
	}
	if !g.complete() && g.bindings.placement == 0 {
		return nil, "" // its Pods are still to come, or the scheduler before this one has told it
	}
	class, highest := g.group.Spec.PriorityClassName, g.highestPriority()
	if class == "" {
		return nil, ""
	}
	value, ok := t.classPriority(class)
	if !ok || value <= highest {
		return nil, ""
	}
	return g.group, fmt.Sprintf("the group ranks with the priority %d, the highest of its Pods, and not with %d, the value of its PriorityClass %s: "+
		"a group ranks no higher than its Pods do", highest, value, class)
}

// setToldCapped notes that a group was told.
func (t *tracker) setToldCapped(group *schedulingv1alpha1.PodGroup) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}]
	if g != nil && g.group != nil && g.group.UID == group.UID {
		g.status.toldCapped = true
	}
}

// tellCapped tells a group once whose PriorityClass does not count. Only one worker has
// the key of a group at a time.
func (r *reporter) tellCapped(ctx context.Context, key types.NamespacedName) {
	if group, message := r.tracker.capping(key); group != nil {
		r.recordEvent(ctx, group, corev1.EventTypeWarning, reasonCapped, message)
		r.tracker.setToldCapped(group)
	}
}
