// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// rank is the gang's place in line. Its PriorityClass counts as far as its members have
// that priority; see package status. The caller holds the lock.
func (t *tracker) rank(g *gang) line.Rank {
	r := line.Rank{Key: g.key, Priority: g.highestPriority()}
	if g.group == nil {
		return r
	}
	r.Created = g.group.CreationTimestamp.Time
	if class := g.group.Spec.PriorityClassName; class != "" {
		if priority, ok := t.classPriority(class); ok {
			r.Priority = min(r.Priority, priority)
		}
	}
	return r
}

// highestPriority is the highest priority among the members that wait or are placed.
func (g *gang) highestPriority() int32 {
	first, highest := true, int32(0)
	for priority := range g.priorities {
		if first || priority > highest {
			first, highest = false, priority
		}
	}
	return highest
}

// countPriority adds or, with sign -1, takes away a member's priority.
func (g *gang) countPriority(pod *corev1.Pod, sign int) {
	priority := corev1helpers.PodPriority(pod)
	if g.priorities[priority] += sign; g.priorities[priority] <= 0 {
		delete(g.priorities, priority)
	}
}

// rerank gives all gangs their places in line anew: a PriorityClass has come or gone.
func (t *tracker) rerank() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, g := range t.gangs {
		t.line.Rerank(t.rank(g), t.now())
	}
	t.stir()
}
