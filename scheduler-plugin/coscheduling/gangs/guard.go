// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Guard tells the preemption of ordinary Pods what it needs to know about gangs; see kube.Gangs. Safe for concurrent
// use.
type Guard struct {
	// Of are the guarded gangs.
	Of *Gangs
}

// MayBeTaken reports whether an ordinary Pod, `by`, may preempt a Pod of lower priority. If the victim is a member of a
// gang, `by` has to have a higher priority than the gang.
func (g *Guard) MayBeTaken(victim, by *corev1.Pod) bool {
	if g.Of.MayBeMember(victim) {
		return false
	}
	key, named := g.Of.KeyOf(victim)
	if !named {
		return true
	}
	g.Of.mu.RLock()
	defer g.Of.mu.RUnlock()
	if !g.Of.synced && g.Of.unread[source{dialect: key.Dialect}] == "" || g.Of.unlisted[key.Dialect] {
		return false // it may belong to any gang, and is judged once that is known
	}
	priority, ok := priorityOf(g.Of.gangs[key], victim)
	return !ok || priority < corev1helpers.PodPriority(by)
}

// priorityOf returns the priority of a member's gang. It returns false if the Pod is not a member; g may be nil.
func priorityOf(g *gang, pod *corev1.Pod) (int32, bool) {
	if g == nil || g.group == nil || g.members[pod.UID] == nil || g.members[pod.UID].isStranger() {
		return 0, false
	}
	return g.worth().Priority, true
}

// Take records that a Pod is about to be preempted. It returns false if the Pod must not be deleted for that: the Pod
// is not bound and will wait again, or another component is deleting it.
func (g *Guard) Take(victim *corev1.Pod) bool {
	g.Of.mu.Lock()
	defer g.Of.mu.Unlock()
	_, m := g.Of.memberOf(victim)
	switch {
	case m == nil, m.isStranger():
		return true
	case m.pod.Spec.NodeName == "" && (m.assumed == "" || m.leaving || m.attempt == givenBack):
		return false
	}
	if m.pod.Spec.NodeName != "" {
		m.attempt = underway
	} else {
		m.attempt = givenBack
	}
	return true
}

// Spare records that a Pod could not be preempted. If the other members of its gang have been evicted meanwhile, this
// Pod is evicted, too.
func (g *Guard) Spare(victim *corev1.Pod) {
	g.Of.mu.Lock()
	defer g.Of.mu.Unlock()
	of, m := g.Of.memberOf(victim)
	if m == nil {
		return
	}
	m.attempt = failed
	if of.preempted {
		g.Of.dissolveIfBroken(of)
	}
}

// Cost returns how many Pods go if a victim goes, including the victim.
func (g *Guard) Cost(victim *corev1.Pod) int {
	key, named := g.Of.KeyOf(victim)
	if !named {
		return 1
	}
	g.Of.mu.RLock()
	defer g.Of.mu.RUnlock()
	if of := g.Of.gangs[key]; of != nil {
		if left, goesOn := of.without([]*corev1.Pod{victim}); !goesOn {
			return 1 + left
		}
	}
	return 1
}

// Rest returns the other members of gangs that can't go on without the victims, always in the same order.
func (g *Guard) Rest(victims []*corev1.Pod) []*corev1.Pod {
	taken := make(map[dialect.Key][]*corev1.Pod)
	for _, pod := range victims {
		if key, named := g.Of.KeyOf(pod); named {
			taken[key] = append(taken[key], pod)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	g.Of.mu.RLock()
	defer g.Of.mu.RUnlock()
	var rest []*corev1.Pod
	for key, pods := range taken {
		if of := g.Of.gangs[key]; of != nil {
			rest = append(rest, of.restWithout(pods)...)
		}
	}
	sortMembers(rest)
	return rest
}
