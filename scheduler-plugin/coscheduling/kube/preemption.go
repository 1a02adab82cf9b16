// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// Gangs has what the default preemption of ordinary Pods needs to know about gangs. Safe for concurrent use.
type Gangs interface {
	// MayBeTaken reports whether an ordinary Pod may preempt a Pod of lower priority.
	MayBeTaken(victim, by *corev1.Pod) bool
	// Cost returns how many Pods go if a victim goes, including the victim.
	Cost(victim *corev1.Pod) int
	// Take is called before a Pod is preempted. It returns false if the Pod need not be preempted, because it was not
	// bound and returns to the queue. Spare is called if the Pod could not be preempted.
	Take(victim *corev1.Pod) bool
	Spare(victim *corev1.Pod)
	// Rest returns the Pods that have to be evicted together with the victims, always in the same order.
	Rest(victims []*corev1.Pod) []*corev1.Pod
}

// GuardPreemption makes the default preemption of a profile's ordinary Pods respect gangs, until ctx ends. The result
// is false if DefaultPreemption is not among the profile's PreEnqueue plugins.
func GuardPreemption(ctx context.Context, s *Scheduler, profile framework.Framework, gangs Gangs) bool {
	guarded := false
	for _, plugin := range profile.PreEnqueuePlugins() {
		d, ok := plugin.(*defaultpreemption.DefaultPreemption)
		if !ok {
			continue
		}
		guarded = true
		tellPreemptors(ctx, s, d.Executor, profile, gangs)
		makeGangAware(d, profile, gangs)
	}
	return guarded
}

// gangAware is the default preemption of ordinary Pods with one addition: if a gang can't go on without a victim, all
// members of the gang become victims. So one member of a gang of a thousand no longer seems the cheapest choice, and
// the PodDisruptionBudgets of the other members count.
type gangAware struct {
	preemption.Interface
	gangs Gangs
}

// makeGangAware makes a profile's default preemption count whole gangs as victims, and spare members of gangs that may
// not be preempted.
func makeGangAware(d *defaultpreemption.DefaultPreemption, profile framework.Framework, gangs Gangs) {
	d.Evaluator = preemption.NewEvaluator(defaultpreemption.Name, profile, gangAware{Interface: d, gangs: gangs}, d.Executor)
	isMoreImportant := d.MoreImportantVictim
	d.MoreImportantVictim = func(a, b preemption.Victim) bool {
		if a.Priority() == b.Priority() {
			if costA, costB := costOf(a, gangs), costOf(b, gangs); costA != costB {
				return costA > costB
			}
		}
		return isMoreImportant(a, b)
	}
	isEligible := d.IsEligiblePod
	d.IsEligiblePod = func(node fwk.NodeInfo, victim preemption.Victim, by *corev1.Pod) bool {
		return isEligible(node, victim, by) && !slices.ContainsFunc(victim.Pods(), func(info fwk.PodInfo) bool {
			return !gangs.MayBeTaken(info.GetPod(), by)
		})
	}
}

// costOf returns how many Pods go with a victim.
func costOf(victim preemption.Victim, gangs Gangs) int {
	if pods := victim.Pods(); len(pods) != 1 {
		return len(pods)
	}
	return gangs.Cost(victim.Pods()[0].GetPod())
}

// SelectVictimsOnNode implements preemption.Interface.
func (g gangAware) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, preemptor *corev1.Pod, node fwk.NodeInfo,
	possible []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget) ([]*corev1.Pod, int, *fwk.Status) {
	victims, violations, status := g.Interface.SelectVictimsOnNode(ctx, state, preemptor, node, possible, budgets)
	if !status.IsSuccess() {
		return victims, violations, status
	}
	rest := g.gangs.Rest(victims)
	if len(rest) == 0 {
		return victims, violations, status
	}
	victims = append(victims, rest...)
	// The scores take the first victim for the most important.
	slices.SortStableFunc(victims, func(a, b *corev1.Pod) int {
		return -cmp.Compare(corev1helpers.PodPriority(a), corev1helpers.PodPriority(b))
	})
	if len(budgets) > 0 {
		violations = countProtected(victims, budgets)
	}
	return victims, violations, status
}

// countProtected returns how many Pods PodDisruptionBudgets protect.
func countProtected(pods []*corev1.Pod, budgets []*policyv1.PodDisruptionBudget) int {
	units := make([]Unit, len(pods))
	for i, pod := range pods {
		units[i] = Unit{Priority: corev1helpers.PodPriority(pod), Pods: []fwk.PodInfo{&framework.PodInfo{Pod: pod}}}
	}
	protected := 0
	for _, n := range Violations(units, budgets) {
		protected += n
	}
	return protected
}
