// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	policyv1 "k8s.io/api/policy/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// Unit is one or more Pods that are preempted together.
type Unit struct {
	Priority int32
	Pods     []fwk.PodInfo
}

// Violations returns, for each unit, how many of its Pods a PodDisruptionBudget protects. As in the default preemption,
// the units use up the budgets in their order.
func Violations(units []Unit, budgets []*policyv1.PodDisruptionBudget) []int {
	index := make(map[preemption.Victim]int, len(units))
	var inOrder []preemption.Victim
	for u, unit := range units {
		victim, err := preemption.NewVictim(unit.Pods, unit.Priority, fwk.PodKeyType)
		if err != nil {
			continue // the unit has no Pods
		}
		inOrder, index[victim] = append(inOrder, victim), u
	}
	counts := make([]int, len(units))
	violating, _ := preemption.FilterVictimsWithPDBViolation(inOrder, budgets)
	for _, v := range violating {
		counts[index[v.Victim]] = v.ViolateCount
	}
	return counts
}
