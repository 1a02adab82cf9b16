// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// PodGroups of other dialects have their Pods counted by the phase, as those who read them
// expect it, and are told about only if some of the Pods are this scheduler's, or there are none
// and the configuration says that such groups are.

// census counts the gang's Pods. Member is the first of them by name, nil if there is none,
// schedulers are the scheduler names that they name, and ours says whether the group is this
// scheduler's to tell about.
func (g *gang) census() (pods dialect.Census, member *corev1.Pod, schedulers []string, ours bool) {
	ours = len(g.members) == 0 && g.rules.Claims != nil && g.rules.Claims(g.key.Dialect)
	for _, m := range g.members {
		pods.Add(m.pod)
		if name := m.pod.Spec.SchedulerName; !slices.Contains(schedulers, name) {
			schedulers = append(schedulers, name)
		}
		ours = ours || g.rules.Serves(m.pod.Spec.SchedulerName)
		if member == nil || compareNames(m.pod.Name, member.Name) < 0 {
			member = m.pod
		}
	}
	return pods, member, schedulers, ours
}

// SetServed says whether the API server serves the PodGroups of a dialect and, if that is not Own, all were seen that
// there were.
func (t *Gangs) SetServed(d dialect.Dialect, served bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unserved[d] = !served
	for key, g := range t.gangs {
		if key.Dialect != d {
			continue
		}
		g.unseen = t.isUnseen(d)
		if g.unseen && !t.synced && g.group != nil && g.group.IsImplied() {
			g.loseGroup(t.config.Now()) // it was made before it was known that the groups can't be seen
		}
		if g.imply(t.config.Now()) {
			t.changed(g)
		}
	}
}

// isUnseen says whether there may be PodGroups of a dialect that can't be seen. Of a dialect that is off there is
// none that counts. The caller holds the lock.
func (t *Gangs) isUnseen(d dialect.Dialect) bool {
	return t.unserved[d] && t.AreOn(d)
}
