//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroupapis

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/podgroupapis/pages"
)

// elsewhere are the pages of docs/tools that have no examples, or whose examples are made by another test, as they
// need feature gates that change what Kubernetes makes of a Job.
var elsewhere = []string{"README.md", "kubernetes.md"}

// TestWhatThePagesOfToolsShowIsSo makes the objects of all examples of docs/tools, and of gangs by rule. A group waits for
// more than a minute before the scheduler reports the likely cause, so the test makes the examples that wait before other
// tests run beside it.
func TestWhatThePagesOfToolsShowIsSo(t *testing.T) {
	paths, err := filepath.Glob("../../docs/tools/*.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := pages.Of(t, "../../docs/gangs-by-rule.md")
	for _, path := range paths {
		if !slices.Contains(elsewhere, filepath.Base(path)) {
			maps.Copy(examples, pages.Of(t, path))
		}
	}
	namespaces := make(map[string]string) // of the examples that wait
	for name, example := range examples {
		if example.Waits != "" {
			namespaces[name] = allowed(t)
			example.Make(t, cluster.Cluster, namespaces[name])
		}
	}
	t.Parallel()
	t.Run("what waits", func(t *testing.T) {
		t.Parallel()
		for name, namespace := range namespaces {
			t.Run(name, func(t *testing.T) {
				example := examples[name]
				example.ExpectWaiting(t, cluster.Cluster, namespace)
			})
		}
	})
	for name, example := range examples {
		if example.Waits == "" {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				example.Check(t, cluster.Cluster, allowed(t))
			})
		}
	}
}
