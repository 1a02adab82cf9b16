// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestProfilesOfKubeflowHaveRights on Frameworks, PodGroups and training jobs, by the labels that the Kubeflow Platform aggregates.
func TestProfilesOfKubeflowHaveRights(t *testing.T) {
	granted := map[string][]string{}
	for _, file := range []string{"/rbac/users.yaml", "/kubeflow/users.yaml"} {
		text, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.UnmarshalStrict([]byte(document), &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, profile := range []string{"view", "edit"} {
				if role.Labels["rbac.authorization.kubeflow.org/aggregate-to-kubeflow-"+profile] != "true" {
					continue
				}
				for _, rule := range role.Rules {
					if slices.Contains(rule.Verbs, map[string]string{"view": "watch", "edit": "create"}[profile]) {
						granted[profile] = append(granted[profile], rule.Resources...)
					}
				}
			}
		}
	}
	for _, profile := range []string{"view", "edit"} {
		for _, resource := range []string{"frameworks", "podgroups", "tfjobs", "pytorchjobs", "xgboostjobs", "paddlejobs", "jaxjobs", "mpijobs"} {
			if !slices.Contains(granted[profile], resource) {
				t.Errorf("kubeflow-%s has no rights on %s", profile, resource)
			}
		}
	}
}
