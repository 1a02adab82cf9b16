// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// gangAware is the default preemption of ordinary Pods, which knows that a gang goes as a
// whole: if a victim is a member that its gang can't spare, the rest of the gang are
// victims too. So one member of a thousand is not the cheapest choice, and what protects
// the others counts.
type gangAware struct {
	preemption.Interface
	tracker *tracker
}

// makeGangAware has a profile's default preemption count so.
func makeGangAware(d *defaultpreemption.DefaultPreemption, profile framework.Framework, t *tracker) {
	d.Evaluator = preemption.NewEvaluator(defaultpreemption.Name, profile, gangAware{Interface: d, tracker: t}, d.Executor)
	before := d.MoreImportantVictim
	d.MoreImportantVictim = func(a, b preemption.Victim) bool {
		if a.Priority() == b.Priority() {
			if costA, costB := t.costOf(a), t.costOf(b); costA != costB {
				return costA > costB
			}
		}
		return before(a, b)
	}
}

// SelectVictimsOnNode implements preemption.Interface.
func (g gangAware) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *corev1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	victims, violations, status := g.Interface.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	if !status.IsSuccess() {
		return victims, violations, status
	}
	rest := g.tracker.restOf(victims)
	if len(rest) == 0 {
		return victims, violations, status
	}
	victims = append(victims, rest...)
	// The scores take the first one for the most important.
	slices.SortStableFunc(victims, func(a, b *corev1.Pod) int {
		return -cmp.Compare(corev1helpers.PodPriority(a), corev1helpers.PodPriority(b))
	})
	if len(budgets) > 0 {
		violations = countProtected(victims, budgets)
	}
	return victims, violations, status
}

// countProtected is how many Pods PodDisruptionBudgets protect.
func countProtected(pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget) int {
	all := make([]preemption.Victim, 0, len(pods))
	for _, pod := range pods {
		info := &framework.PodInfo{Pod: pod}
		victim, err := preemption.NewVictim([]fwk.PodInfo{info}, corev1helpers.PodPriority(pod), fwk.PodKeyType)
		if err != nil {
			continue // There is always a Pod, so there is no error.
		}
		all = append(all, victim)
	}
	violating, _ := preemption.FilterVictimsWithPDBViolation(all, budgets)
	return len(violating)
}

// costOf is how many Pods go with a victim.
func (t *tracker) costOf(victim preemption.Victim) int {
	cost := len(victim.Pods())
	if cost != 1 {
		return cost
	}
	pod := victim.Pods()[0].GetPod()
	key, named := podgroup.GroupOf(pod)
	if !named {
		return cost
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if g := t.gangs[key]; g != nil {
		if left, goesOn := g.without([]*corev1.Pod{pod}, t.ours); !goesOn {
			cost += int(left.Total)
		}
	}
	return cost
}

// restOf is the rest of the gangs that can't go on without some Pods, in order.
func (t *tracker) restOf(victims []*corev1.Pod) []*corev1.Pod {
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
