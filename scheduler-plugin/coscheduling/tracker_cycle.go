// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// gangView is a gang as a gang cycle sees it.
type gangView struct {
	key   types.NamespacedName
	rank  line.Rank
	group *schedulingv1alpha1.PodGroup
	// waiting are the members to place, in their order, and classKeys are theirs.
	waiting   []*corev1.Pod
	classKeys []string
	// placed counts the members that are placed, and nodes is where those are
	// that have not ended.
	placed podgroup.Tally
	nodes  []string
	// mayPreempt says that no member, nor the group's PriorityClass, forbids it to
	// preempt.
	mayPreempt bool
	// starving says that the gang has waited for longer than starvationAfter, and
	// is the first to have a right to be helped.
	starving        bool
	starvationAfter time.Duration
	// firstAttempt is when the gang was first planned.
	firstAttempt time.Time
	failures     int
}

// schedulerName is the scheduler of the gang's first member, which speaks for
// all of them.
func (v *gangView) schedulerName() string {
	return v.waiting[0].Spec.SchedulerName
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
	v := gangView{key: g.key, rank: t.rank(g), group: g.group, placed: g.placed.Plus(podgroup.Tally{}),
		failures: t.line.Failures(g.key)}
	keys := make(map[types.UID]string, g.waiting.Total)
	for _, m := range g.members {
		switch state(m, t.ours) {
		case memberWaiting:
			v.waiting = append(v.waiting, m.pod)
			keys[m.pod.UID] = m.classKey()
		case memberPlaced:
			if m.pod.Status.Phase != corev1.PodSucceeded {
				v.nodes = append(v.nodes, m.node())
			}
		}
	}
	sortMembers(v.waiting)
	for _, pod := range v.waiting {
		v.classKeys = append(v.classKeys, keys[pod.UID])
	}
	slices.Sort(v.nodes)
	return v
}

// regardsOthers says whether a Pod that is placed may make room for this one.
func regardsOthers(pod *corev1.Pod) bool {
	return len(pod.Spec.TopologySpreadConstraints) > 0 ||
		pod.Spec.Affinity != nil && pod.Spec.Affinity.PodAffinity != nil
}

// assume records where a gang cycle has put members, by UID, and says whether that still
// keeps the gang's minimum. If not, because the group or its members have changed since
// the cycle began, nothing is recorded.
func (t *tracker) assume(view *gangView, nodes map[types.UID]string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[view.key]
	if g == nil || g.group == nil || g.group.UID != view.group.UID {
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
	rest := len(nodes) < len(view.waiting) && g.complete()
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
func (t *tracker) fail(key types.NamespacedName, uid types.UID, why shortfall, terms line.Terms) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || g.group == nil || g.group.UID != uid {
		return
	}
	if !g.complete() {
		t.line.Leave(key, t.now()) // its last member that waited has gone in its turn
	}
	t.line.Refused(key, line.Refusal{Message: why.message, Unready: why.unready, Room: why.room, Need: why.need, Shape: why.shape,
		Again: why.again, Helpless: why.helpless, Took: why.took}, terms, t.now())
	t.report(key, 0)
}

// shortfall is why a gang found no place.
type shortfall struct {
	message string
	// room is how many of the needed members had a place.
	room int
	// needed is how many members the minimum lacks.
	needed int
	// need is what must happen before the gang can be placed.
	need line.Need
	// shape is equal for gangs that find no place for the same reason; empty for one that is
	// like no other.
	shape string
	// again is when to plan again even if nothing happens; zero for never.
	again time.Time
	// helpless is for how long the gang gives up its right to be helped, because no room
	// can be held back for it. 0: it keeps it.
	helpless time.Duration
	// took is how long a turn has taken that was given up; 0 if it was not.
	took time.Duration
	// unready says that it is not room that is missing: members may not be scheduled yet.
	unready bool
	// certain says that there was no plan at all, rather than plans that plugins
	// rejected.
	certain bool
}

// isRefused says whether the gang found no place in its last turn. The caller holds the lock.
func (t *tracker) isRefused(g *gang) bool {
	_, refused := t.line.Told(g.key)
	return refused
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
