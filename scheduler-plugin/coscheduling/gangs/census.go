// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// PodGroups of other dialects have their Pods counted by the phase, as those who read them
// expect it, and are told about only if some of the Pods are this scheduler's.

// census counts the gang's Pods. Member is the first of them by name, nil if there is none, and
// served says whether one names a scheduler that is served here.
func (g *gang) census() (pods dialect.Census, member *corev1.Pod, served bool) {
	for _, m := range g.members {
		pods.Add(m.pod)
		served = served || g.rules.Serves(m.pod.Spec.SchedulerName)
		if member == nil || compareNames(m.pod.Name, member.Name) < 0 {
			member = m.pod
		}
	}
	return pods, member, served
}

// SetServed says whether the API server serves the PodGroups of a dialect that is not Own.
func (t *Gangs) SetServed(d dialect.Dialect, served bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unserved[d] = !served
}
