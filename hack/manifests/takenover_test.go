// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestAStolenTokenOfFrameworkBarrierReadsFrameworksOfItsNamespace, and nothing else.
func TestAStolenTokenOfFrameworkBarrierReadsFrameworksOfItsNamespace(t *testing.T) {
	objects := objectsOf(t, root+"/barrier")
	if everywhere := of[*rbacv1.ClusterRoleBinding](objects); len(everywhere) > 0 {
		t.Errorf("it has rights in all namespaces: %v", names(everywhere))
	}
	bindings := of[*rbacv1.RoleBinding](objects)
	if len(bindings) == 0 {
		t.Error("it is bound to no role")
	}
	for _, binding := range bindings {
		if want := (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "frameworkbarrier"}); binding.RoleRef != want {
			t.Errorf("it has the rights of %v", binding.RoleRef)
		}
	}
	var rules []rbacv1.PolicyRule
	for _, role := range of[*rbacv1.Role](objects) {
		rules = append(rules, role.Rules...)
	}
	want := []rbacv1.PolicyRule{{APIGroups: []string{"frameworkcontroller.microsoft.com"}, Resources: []string{"frameworks"}, Verbs: []string{"get", "list", "watch"}}}
	if diff := cmp.Diff(want, rules); diff != "" {
		t.Errorf("its rights (-want,+got):\n%s", diff)
	}
}

// TestAStolenTokenOfTheWebPageChangesNothing, and reads no Secret. All it may create are questions.
func TestAStolenTokenOfTheWebPageChangesNothing(t *testing.T) {
	roles := of[*rbacv1.ClusterRole](objectsOf(t, root+"/dashboard"))
	if len(roles) == 0 {
		t.Fatal("it has no role")
	}
	for _, role := range roles {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if slices.Contains([]string{"*", "secrets", "configmaps", "serviceaccounts/token"}, resource) {
					t.Errorf("it may read %s", resource)
				}
				asks := slices.Contains([]string{"tokenreviews", "subjectaccessreviews"}, resource)
				for _, verb := range rule.Verbs {
					if reads := slices.Contains([]string{"get", "list", "watch"}, verb); !reads && !(asks && verb == "create") {
						t.Errorf("it may %s %s", verb, resource)
					}
				}
			}
		}
	}
}
