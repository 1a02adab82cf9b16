// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// This file is what the default preemption of ordinary Pods asks about gangs.

var _ kube.Gangs = &tracker{}

// MayBeTaken implements kube.Gangs: an ordinary Pod has to outrank the gang of a victim.
func (t *tracker) MayBeTaken(victim, by *corev1.Pod) bool {
	if _, member := podgroup.GroupOf(victim); member && t.isBlind() {
		return false // it may be any gang's, and is to be judged when that is known
	}
	priority, ok := t.priorityOfGang(victim)
	return !ok || priority < corev1helpers.PodPriority(by)
}

// Cost implements kube.Gangs.
func (t *tracker) Cost(victim *corev1.Pod) int {
	key, named := podgroup.GroupOf(victim)
	if !named {
		return 1
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.gangs[key]; g != nil {
		if left, goesOn := g.without([]*corev1.Pod{victim}, t.ours); !goesOn {
			return 1 + int(left.Total)
		}
	}
	return 1
}

// Rest implements kube.Gangs: the rest of the gangs that can't go on without some Pods.
func (t *tracker) Rest(victims []*corev1.Pod) []*corev1.Pod {
	taken := make(map[types.NamespacedName][]*corev1.Pod)
	for _, pod := range victims {
		if key, named := podgroup.GroupOf(pod); named {
			taken[key] = append(taken[key], pod)
		}
	}
	if len(taken) == 0 {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	var rest []*corev1.Pod
	for key, pods := range taken {
		if g := t.gangs[key]; g != nil {
			rest = append(rest, g.restWithout(pods, t.ours)...)
		}
	}
	sortMembers(rest)
	return rest
}

// restWithout are the placed members that are left over if some Pods go, nil if the gang
// can go on, or never could.
func (g *gang) restWithout(pods []*corev1.Pod, ours func(string) bool) []*corev1.Pod {
	if _, goesOn := g.without(pods, ours); goesOn {
		return nil
	}
	gone := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		gone[pod.UID] = true
	}
	var rest []*corev1.Pod
	for uid, m := range g.members {
		if !gone[uid] && state(m, ours) == memberPlaced && m.pod.Status.Phase != corev1.PodSucceeded && m.pod.Spec.NodeName != "" {
			rest = append(rest, m.pod)
		}
	}
	return rest
}

// without is what is left of a gang's placed members if some Pods go, and whether the gang
// goes on with that. One that lacks its minimum already does not stop because of them.
func (g *gang) without(pods []*corev1.Pod, ours func(string) bool) (left podgroup.Tally, goesOn bool) {
	if g.group == nil || g.group.Spec.DisruptionMode == schedulingv1alpha1.DisruptPod || g.lacksMinimum() {
		return podgroup.Tally{}, true
	}
	left = g.placed.Plus(podgroup.Tally{})
	for _, pod := range pods {
		if m := g.members[pod.UID]; m != nil && state(m, ours) == memberPlaced {
			left.Add(podgroup.RoleOf(pod), -1)
		}
	}
	return left, podgroup.Holds(&g.group.Spec, left)
}
