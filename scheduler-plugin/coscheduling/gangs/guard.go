// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Guard is what the preemption of ordinary Pods asks about gangs; see kube.Gangs. It is safe
// for concurrent use.
type Guard struct {
	// Of are the gangs that are guarded.
	Of *Gangs
}

// MayBeTaken says whether an ordinary Pod may preempt a Pod of lower priority: it has to
// outrank the gang of the victim.
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
	if !g.Of.synced && g.Of.unread[place{dialect: key.Dialect}] == "" || g.Of.unlisted[key.Dialect] {
		return false // it may be any gang's, and is to be judged when that is known
	}
	priority, ok := priorityOf(g.Of.gangs[key], victim)
	return !ok || priority < corev1helpers.PodPriority(by)
}

// priorityOf is the priority of a member's gang, false if the Pod is none. The gang is nil
// if there is none.
func priorityOf(g *gang, pod *corev1.Pod) (int32, bool) {
	if g == nil || g.group == nil || g.members[pod.UID] == nil || g.members[pod.UID].isStranger() {
		return 0, false
	}
	return g.worth().Priority, true
}

// Take notes that a Pod is about to be preempted. It is false if there is no need: the Pod is
// not bound, and it is given back to those that wait, or somebody else sees to that. Such a
// Pod would be deleted for nothing.
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

// Spare notes that a Pod could not be preempted after all. If its gang was broken up meanwhile, the Pod is all that is left, and
// goes as well.
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

// Cost is how many Pods go if one goes, with that.
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

// Rest are the rest of the gangs that can't go on without some Pods, in an order that does
// not change.
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
