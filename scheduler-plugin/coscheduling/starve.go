// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// prepare says what the gang of a cycle may do if it finds no place.
func (e *engine) prepare(view *gangView) {
	view.MayPreempt = e.mayPreempt(view)
	view.StarvationAfter = e.pluginOf(view).args.StarvationAfter.Duration
	view.Starving = e.tracker.starves(view.Key)
	view.shape = view.Shape()
}

// mayPreempt says whether neither a member nor the group's PriorityClass has the
// preemptionPolicy Never.
func (e *engine) mayPreempt(view *gangView) bool {
	for _, pod := range view.Waiting {
		if policy := pod.Spec.PreemptionPolicy; policy != nil && *policy == corev1.PreemptNever {
			return false
		}
	}
	return e.classMayPreempt(view.Group.Spec.PriorityClassName)
}

// starves says whether a gang has the right to be helped now.
func (t *tracker) starves(key types.NamespacedName) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.line.Starves(key, t.now())
}

// waitsSince is since when the gang has found no place: since now or, if a scheduler before
// this one has said so, since that.
func (g *gang) waitsSince(now time.Time) time.Time {
	since := news.NoRoomSince(g.record.ConditionsOf(g.group))
	if !since.IsZero() && since.Before(now) {
		return since
	}
	return now
}
