// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// gangView is a gang as a gang cycle sees it.
type gangView struct {
	place.Gang
	// firstAttempt is when the gang was first planned.
	firstAttempt time.Time
	failures     int
	// shape is the gang's; see Gang.Shape.
	shape string
}

// begin begins the turn of the gang that is next, and returns it as its cycle sees it. It
// returns false if none is to be planned now, its priority is lower than this, or it is no
// higher and the gang was not due at this time.
func (t *tracker) begin(priority int32, dueAt time.Time) (gangView, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, ok := t.line.Next(t.now())
	if !ok || next.Priority < priority || next.Priority == priority && t.line.DueSince().After(dueAt) {
		return gangView{}, false
	}
	g := t.gangs[next.Key]
	view := t.view(g)
	t.line.Begin(g.key, g.waitsSince(t.now()), t.now())
	view.firstAttempt = t.line.Since(g.key)
	return view, true
}

// ring is the priority of the gang that is to have its turn now, if there is one, and when
// to ask again if nothing happens before; zero for never.
func (t *tracker) ring() (priority int32, now bool, again time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	next, now := t.line.Next(t.now())
	return next.Priority, now, t.line.Until()
}

// view is a gang as a cycle sees it that begins now. The caller holds the lock.
func (t *tracker) view(g *gang) gangView {
	v := gangView{failures: t.line.Failures(g.key),
		Gang: place.Gang{Key: g.key, Rank: t.rank(g), Group: g.group, Placed: g.placed.Plus(podgroup.Tally{})}}
	keys := make(map[types.UID]string, g.waiting.Total)
	for _, m := range g.members {
		switch state(m, t.ours) {
		case memberWaiting:
			v.Waiting = append(v.Waiting, m.pod)
			keys[m.pod.UID] = m.classKey()
		case memberPlaced:
			if m.pod.Status.Phase != corev1.PodSucceeded {
				v.Nodes = append(v.Nodes, m.node())
			}
		}
	}
	sortMembers(v.Waiting)
	for _, pod := range v.Waiting {
		v.ClassKeys = append(v.ClassKeys, keys[pod.UID])
	}
	slices.Sort(v.Nodes)
	return v
}

// standings are those of all gangs with members placed.
func (t *tracker) standings() map[types.NamespacedName]*place.Standing {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[types.NamespacedName]*place.Standing)
	for key, g := range t.gangs {
		if g.group != nil && g.placed.Total > 0 {
			all[key] = &place.Standing{Group: g.group, Rank: t.rank(g), Placed: g.placed.Plus(podgroup.Tally{}),
				Waits: t.isRefused(g) && g.complete() && !t.line.Since(key).IsZero(), Since: t.line.Since(key)}
		}
	}
	return all
}

// assume records where a gang cycle has put members, by UID, and says whether that still
// keeps the gang's minimum. If not, because the group or its members have changed since
// the cycle began, nothing is recorded.
func (t *tracker) assume(view *gangView, nodes map[types.UID]string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[view.Key]
	if g == nil || g.group == nil || g.group.UID != view.Group.UID {
		return false
	}
	placed := g.placed.Plus(podgroup.Tally{})
	for uid := range nodes {
		if m := g.members[uid]; m != nil && state(m, t.ours) == memberWaiting {
			placed.Add(podgroup.RoleOf(m.pod), 1)
		}
	}
	if !podgroup.Holds(&g.group.Spec, placed) {
		return false
	}
	g.bindings.placement++
	for uid, node := range nodes {
		m := g.members[uid]
		if m == nil || m.pod.Spec.NodeName != "" {
			continue
		}
		g.count(m, state(m, t.ours), -1)
		m.assumed, m.placement = node, g.bindings.placement
		g.count(m, state(m, t.ours), 1)
	}
	// Of the rest the cycle tells in a moment, unless it is gone.
	rest := len(nodes) < len(view.Waiting) && g.complete()
	t.line.Placed(g.key, rest, t.now())
	if !rest && g.complete() {
		t.line.Enter(t.rank(g), g.lacksMinimum(), t.now()) // members have come meanwhile
	}
	return true
}

// alike ends the turn of a gang whose shape is known to find no place now, and says whether
// it did.
func (t *tracker) alike(key types.NamespacedName, shape string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.line.Alike(key, shape, t.now())
	if ok {
		t.report(key, 0)
	}
	return ok
}

// fail records that a gang found no place. uid is that of the group that was
// planned: one that took its name since has nothing to do with it.
func (t *tracker) fail(key types.NamespacedName, uid types.UID, why line.Refusal, terms line.Terms) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || g.group == nil || g.group.UID != uid {
		return
	}
	if !g.complete() {
		t.line.Leave(key, t.now()) // its last member that waited has gone in its turn
	}
	t.line.Refused(key, why, terms, t.now())
	t.report(key, 0)
}

// isRefused says whether the gang found no place in its last turn. The caller holds the lock.
func (t *tracker) isRefused(g *gang) bool {
	_, refused := t.line.Told(g.key)
	return refused
}
