// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

var _ status.Gangs = &tracker{}

// Look implements status.Gangs.
func (t *tracker) Look(key types.NamespacedName) (news.Gang, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || !t.tells(g) {
		return news.Gang{}, false
	}
	known := t.known(g)
	if most := int(g.waiting.Total) + g.strangers; most > 0 {
		known.Pods = make([]news.Pod, 0, most)
		for _, m := range g.members {
			if pod, ok := t.waitingPod(m); ok {
				known.Pods = append(known.Pods, pod)
			}
		}
	}
	return withOwnTallies(known), true
}

// LookAt implements status.Gangs.
func (t *tracker) LookAt(key types.NamespacedName, uid types.UID) (news.Gang, news.Pod, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	if g == nil || !t.tells(g) || g.members[uid] == nil {
		return news.Gang{}, news.Pod{}, false
	}
	pod, ok := t.waitingPod(g.members[uid])
	return withOwnTallies(t.known(g)), pod, ok
}

// Remember implements status.Gangs.
func (t *tracker) Remember(group *schedulingv1alpha1.PodGroup, record news.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	g := t.gangs[types.NamespacedName{Namespace: group.Namespace, Name: group.Name}]
	if g != nil && g.group != nil && g.group.UID == group.UID {
		g.record = record
	}
}

// tells says whether anybody is to be told of a gang: all that existed before is known, and
// this scheduler leads. What waits for PodGroups that the API server does not serve is told
// so before that. The caller holds the lock.
func (t *tracker) tells(g *gang) bool {
	return t.synced || t.tellsNoGroups && g.group == nil
}

// known is what is known of a gang, without its Pods. Its tallies are the gang's own. The
// caller holds the lock.
func (t *tracker) known(g *gang) news.Gang {
	known := news.Gang{
		Key: g.key, Group: g.group, Missing: g.groupless, NotServed: t.noGroups,
		Waiting: g.waiting, Placed: g.placed, Bound: g.bound, Failed: g.failedMembers, Deleted: g.deletedMembers,
		Unbound: g.bindings.message, Assumed: g.bindings.placement > 0, Record: g.record,
	}
	if told, refused := t.line.Told(g.key); refused {
		known.Refusal = &told
	}
	switch g.held {
	case heldForPreemption:
		known.Kept = news.Preempting
	case heldForStarving:
		known.Kept = news.Starving
	}
	if len(g.priorities) > 0 {
		highest := g.highestPriority()
		known.Highest = &highest
	}
	if g.group != nil && g.group.Spec.PriorityClassName != "" {
		if value, ok := t.classPriority(g.group.Spec.PriorityClassName); ok {
			known.Class = &value
		}
	}
	return known
}

// withOwnTallies gives a Gang tallies that nobody changes.
func withOwnTallies(known news.Gang) news.Gang {
	for _, tally := range []*podgroup.Tally{&known.Waiting, &known.Placed, &known.Bound} {
		*tally = tally.Plus(podgroup.Tally{})
	}
	return known
}

// waitingPod is a member that waits, or a stranger that would if it were none. It is
// false for any other Pod. The caller holds the lock.
func (t *tracker) waitingPod(m *member) (news.Pod, bool) {
	if m.isStranger() {
		return news.Pod{Pod: m.pod, Stranger: true, Since: m.strangerSince}, t.waitsInVain(m)
	}
	return news.Pod{Pod: m.pod, Since: m.seen}, state(m, t.ours) == memberWaiting
}

// tellNoGroups has Pods be told that the API server serves no PodGroups. Before that
// nobody is told anything while not all PodGroups are known.
func (t *tracker) tellNoGroups() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.noGroups {
		return // it serves them by now
	}
	t.tellsNoGroups = true
	for key := range t.gangs {
		t.report(key, 0)
	}
}

// waitingGangs counts the gangs that wait, by reason. A scheduler that does not lead
// counts none, so that replicas can be added up.
func (t *tracker) waitingGangs() map[string]int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	counts := make(map[string]int)
	for _, g := range t.gangs {
		if !t.synced || g.group == nil || g.waiting.Total == 0 {
			continue
		}
		known := t.known(g)
		if reason := known.WaitsFor(); reason != "" {
			counts[reason]++
		}
	}
	return counts
}
