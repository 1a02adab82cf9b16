// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import corev1 "k8s.io/api/core/v1"

// prepare says what the gang of a cycle may do if it finds no place.
func (e *engine) prepare(view *gangView) {
	view.MayPreempt = e.mayPreempt(view)
	view.StarvationAfter = e.pluginOf(view).args.StarvationAfter.Duration
	view.Starving = e.gangs.Starves(view.Key)
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
