// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// A gang whose members could not be bound has its place and can't have it: a webhook
// refuses the bindings, a volume is not to be had. It backs off, as one without a
// place does, but by a count of its own, because each placement is a success of the
// gang cycle before it. Nothing shortens this back-off: room is not what the gang lacks.

// bindings are what has come of a gang's placements.
type bindings struct {
	// placement is the number of the last placement, and failed that of the last one
	// of which a member could not be bound.
	placement, failed int
	// message is that of the last failure, empty if the members were bound since.
	message string
}

// failedBinding is a member that could not be bound.
type failedBinding struct {
	pod     *corev1.Pod
	message string
	terms   line.Terms
}

// unassume records that a member could not be bound, and has its gang planned again
// after a back-off. The members of one placement that fail are one failure.
func (t *tracker) unassume(f failedBinding) {
	key, _ := podgroup.GroupOf(f.pod)
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || g.members[f.pod.UID] == nil {
		return
	}
	m := g.members[f.pod.UID]
	if m.assumed == "" {
		return
	}
	g.count(m, state(m, t.ours), -1)
	// If it was being preempted, that was all: a Pod that is not bound yet is not
	// deleted for it.
	m.assumed, m.leaving = "", false
	t.enter(g, m)
	if b := &g.bindings; m.placement > b.failed {
		b.failed, b.message = m.placement, f.message
		t.line.Unbound(g.key, f.terms, t.now())
	}
	t.changed(g)
}

// settle has the gang begin anew once its minimum is bound: with the time since when it
// waits and, if none of the last placement has failed or nobody is left to be bound,
// with its back-off. The caller holds the lock.
func (t *tracker) settle(g *gang) {
	if !g.scheduled() {
		return
	}
	t.line.Settled(g.key, t.now())
	b := &g.bindings
	if b.message == "" || b.failed == b.placement && g.waiting.Total > 0 {
		return
	}
	for _, m := range g.members {
		if m.assumed != "" {
			return
		}
	}
	b.message = ""
	t.line.Bound(g.key, t.now())
}
