// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"slices"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func TestBudgetsAreSpentOnUnitsInTheirOrder(t *testing.T) {
	unit := func(names ...string) Unit {
		u := Unit{}
		for _, name := range names {
			u.Pods = append(u.Pods, &framework.PodInfo{Pod: makePod(name, 0, "node")})
		}
		return u
	}
	tests := map[string]struct {
		units   []Unit
		budgets []*policyv1.PodDisruptionBudget
		want    []int
	}{
		"without a budget nobody is protected": {
			units: []Unit{unit("a"), unit("b")}, want: []int{0, 0},
		},
		"the first units have what a budget allows": {
			units:   []Unit{unit("a"), unit("b"), unit("c")},
			budgets: []*policyv1.PodDisruptionBudget{makeBudget("one", 2, "a", "b", "c")},
			want:    []int{0, 0, 1},
		},
		"another order has other units protected": {
			units:   []Unit{unit("c"), unit("b"), unit("a")},
			budgets: []*policyv1.PodDisruptionBudget{makeBudget("one", 1, "a", "c")},
			want:    []int{0, 0, 1},
		},
		"each Pod of a unit counts": {
			units:   []Unit{unit("a", "b", "c"), unit("d")},
			budgets: []*policyv1.PodDisruptionBudget{makeBudget("one", 1, "a", "b", "c", "d")},
			want:    []int{2, 1},
		},
		"a unit that is protected spends nonetheless": {
			units:   []Unit{unit("a", "b"), unit("b", "c"), unit("c")},
			budgets: []*policyv1.PodDisruptionBudget{makeBudget("one", 0, "a"), makeBudget("two", 2, "b", "c")},
			want:    []int{1, 1, 1},
		},
		"a unit without Pods has none": {
			units:   []Unit{{Pods: []fwk.PodInfo{}}, unit("a")},
			budgets: []*policyv1.PodDisruptionBudget{makeBudget("one", 0, "a")},
			want:    []int{0, 1},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Violations(tc.units, tc.budgets); !slices.Equal(got, tc.want) {
				t.Errorf("protected are %v, want %v", got, tc.want)
			}
		})
	}
}
