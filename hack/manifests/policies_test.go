// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// TestPoliciesReadJobsInTheSameWay: CEL has no library, so that what policies share stands in each.
func TestPoliciesReadJobsInTheSameWay(t *testing.T) {
	policies := of[*admissionregistrationv1.ValidatingAdmissionPolicy](objectsOf(t, root+"/policies"))
	if len(policies) != 3 {
		t.Fatalf("%d policies, want 3", len(policies))
	}
	expressions, seen := map[string]string{}, map[string]int{}
	same := func(policy, name, expression string) {
		seen[name]++
		if before, ok := expressions[name]; ok && before != expression {
			t.Errorf("%s has another %q (-others,+its):\n%s", policy, name, cmp.Diff(before, expression))
		}
		expressions[name] = expression
	}
	for _, p := range policies {
		for _, c := range p.Spec.MatchConditions {
			same(p.Name, c.Name, c.Expression)
		}
		for _, v := range p.Spec.Variables {
			if v.Name != "refused" { // what it refuses is a policy's own
				same(p.Name, v.Name, v.Expression)
			}
		}
		if diff := cmp.Diff(kinds(policies[0]), kinds(p)); diff != "" {
			t.Errorf("%s is about other kinds (-%s,+its):\n%s", p.Name, policies[0].Name, diff)
		}
	}
	for name, policies := range map[string]int{"spec-changes": 3, "goes-on": 3, "states": 3, "templatesOf": 2} {
		if seen[name] != policies {
			t.Errorf("%d policies have %q, want %d", seen[name], name, policies)
		}
	}
}

// kinds are the resources that a policy is about, but for subresources.
func kinds(policy *admissionregistrationv1.ValidatingAdmissionPolicy) []string {
	var all []string
	for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
		for _, resource := range rule.Resources {
			if !strings.Contains(resource, "/") {
				all = append(all, strings.Join(rule.APIGroups, ",")+" "+resource)
			}
		}
	}
	return all
}
