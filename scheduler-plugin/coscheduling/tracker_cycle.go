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
	// is the first to have a right to be helped; starvesAt when it will have.
	starving        bool
	starvesAt       time.Time
	starvationAfter time.Duration
	// firstAttempt is when the gang was first planned; zero before.
	firstAttempt time.Time
	failures     int
}

// schedulerName is the scheduler of the gang's first member, which speaks for
// all of them.
func (v *gangView) schedulerName() string {
	return v.waiting[0].Spec.SchedulerName
}

// turn is what to do with a member that the queue has handed out.
type turn int

const (
	// turnOver: it has a place, or its gang is not ready.
	turnOver turn = iota
	// turnPlan: plan its gang.
	turnPlan
	// turnYield: plan another gang, which is ahead of its own.
	turnYield
)

// next is the gang to plan in the turn of a member that the queue has handed
// out, and what to do with that member.
func (t *tracker) next(pod *corev1.Pod) (gangView, turn) {
	key, _ := podgroup.GroupOf(pod)
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || !t.synced || !g.complete() || !t.isAwake(g) {
		return gangView{}, turnOver
	}
	if m := g.members[pod.UID]; m == nil || state(m, t.ours) != memberWaiting {
		return gangView{}, turnOver
	}
	if left := t.notBefore(g).Sub(t.now()); left > 0 {
		t.wake(key, left)
		return gangView{}, turnOver
	}
	if first := t.firstInLine(g); first != g {
		if first.attempt.notBefore.After(t.now()) {
			first.attempt.notAhead = t.now().Add(first.attempt.initial)
		}
		return t.view(first), turnYield
	}
	return t.view(g), turnPlan
}

// view is a gang as a cycle sees it that begins now. The caller holds the lock.
func (t *tracker) view(g *gang) gangView {
	v := gangView{key: g.key, rank: t.rank(g), group: g.group, placed: g.placed.Plus(podgroup.Tally{}),
		firstAttempt: g.attempt.first, failures: g.attempt.failures + g.bindings.failures}
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
	delete(t.awake, g.key)
	t.planned[g.key] = g
	g.attempt.gained = 0
	g.attempt.regardsOthers = slices.ContainsFunc(v.waiting, regardsOthers)
	if g.attempt.first.IsZero() {
		g.attempt.first = t.now()
		v.firstAttempt = g.attempt.first
	}
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
	g.attempt = attempt{first: g.attempt.first, gained: g.attempt.gained, regardsOthers: g.attempt.regardsOthers}
	g.electLeader(t.ours)
	if g.waiting.Total == 0 {
		delete(t.awake, g.key)
		delete(t.planned, g.key)
	}
	return true
}

// fail records that a gang found no place. uid is that of the group that was
// planned: one that took its name since has nothing to do with it.
//
// Room that grows is progress: the cluster is freeing what the gang needs, and
// the back-off starts over, so that the gang is there when it is enough.
func (t *tracker) fail(key types.NamespacedName, uid types.UID, why shortfall, initial, longest time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[key]
	if g == nil || g.group == nil || g.group.UID != uid {
		return
	}
	if why.room > g.attempt.room {
		g.attempt.failures = 0
	}
	g.attempt.failures++
	g.attempt.message, g.attempt.room, g.attempt.again = why.message, why.room, why.again
	g.attempt.need, g.attempt.unready = why.need, why.unready
	if why.helpless > 0 {
		g.attempt.helplessUntil = t.now().Add(why.helpless)
		t.awakenOthers(key)
	}
	if g.attempt.gained > 0 && g.attempt.gained >= why.need.members {
		t.markAwake(g)
		t.wake(key, max(0, t.notBefore(g).Sub(t.now())))
	}
	if !why.again.IsZero() {
		t.wake(key, why.again.Sub(t.now()))
	}
	g.attempt.initial = initial
	g.attempt.notBefore = t.now().Add(backoff(g.attempt.failures, initial, longest))
	if g.attempt.overdue = why.took > 0; g.attempt.overdue {
		t.owe(g, why.took)
	}
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
	need need
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

// backoff is how long a gang waits after so many failures in a row: initial,
// doubled with each further one, at most longest.
func backoff(failures int, initial, longest time.Duration) time.Duration {
	d := initial
	for i := 1; i < failures && d < longest; i++ {
		d *= 2
	}
	return min(d, longest)
}

// Reasons for which gangs wait that are no reasons of a condition: their victims
// end, and they starve and room is held back for them.
const (
	waitingForVictims = "Preempting"
	waitingStarved    = "Starving"
)

// waitingGangs counts the gangs that wait, by the reason of their condition. A
// scheduler that does not lead counts none, so that replicas can be added up.
func (t *tracker) waitingGangs() map[string]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	counts := make(map[string]int)
	for _, g := range t.gangs {
		if !t.synced || g.group == nil || g.waiting.Total == 0 {
			continue
		}
		switch {
		case !g.complete():
			counts[schedulingv1alpha1.ReasonNotEnoughTasks]++
		case g.held == heldForPreemption:
			counts[waitingForVictims]++
		case g.held == heldForStarving:
			counts[waitingStarved]++
		case g.attempt.failures > 0:
			counts[schedulingv1alpha1.ReasonNotEnoughResources]++
		case g.bindings.failures > 0:
			counts[schedulingv1alpha1.ReasonBindingFailed]++
		}
	}
	return counts
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
