// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// prepare says what the gang of a cycle may do if it finds no place.
func (e *engine) prepare(view *gangView) {
	view.mayPreempt = e.mayPreempt(view)
	view.starvationAfter = e.plugins[view.schedulerName()].args.StarvationAfter.Duration
	view.starving, view.starvesAt = e.tracker.starves(view.key, view.starvationAfter)
}

// mayPreempt says whether neither a member nor the group's PriorityClass has the
// preemptionPolicy Never.
func (e *engine) mayPreempt(view *gangView) bool {
	for _, pod := range view.waiting {
		if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
			return false
		}
	}
	return e.classMayPreempt(view.group.Spec.PriorityClassName)
}

// starves says whether a gang has waited for longer than after, and of those
// that have is the first in line of the highest waiting priority. A gang for which no
// room can be held back does not count for a while, or nobody behind it would ever be
// helped. If the gang does not starve, the time is when it may; zero for never.
func (t *tracker) starves(key types.NamespacedName, after time.Duration) (bool, time.Time) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || after == 0 || !g.lacksMinimum() {
		return false, time.Time{}
	}
	now := t.now()
	if at := g.waitsSince(now).Add(after); at.After(now) {
		return false, at
	}
	if g.attempt.helplessUntil.After(now) {
		return false, g.attempt.helplessUntil
	}
	own := t.rank(g)
	for _, other := range t.gangs {
		if other == g || other.attempt.failures == 0 || other.attempt.helplessUntil.After(now) || !other.complete() || !other.lacksMinimum() {
			continue
		}
		r := t.rank(other)
		if r.Priority > own.Priority ||
			r.Compare(own) < 0 && !other.waitsSince(now).Add(after).After(now) {
			return false, time.Time{}
		}
	}
	return true, time.Time{}
}

// waitsSince is since when the gang has found no place: since its first cycle or,
// if a scheduler before this one has said so, since that.
func (g *gang) waitsSince(now time.Time) time.Time {
	since := g.attempt.first
	if since.IsZero() {
		since = now
	}
	c := findCondition(g.conditions(), schedulingv1alpha1.ConditionUnschedulable)
	if c != nil && c.Status == metav1.ConditionTrue && c.Reason == schedulingv1alpha1.ReasonNotEnoughResources &&
		c.LastTransitionTime.Time.Before(since) {
		return c.LastTransitionTime.Time
	}
	return since
}
