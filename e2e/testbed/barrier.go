// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"os"
	"testing"
)

// GrantBarrier lets the Pods of a namespace use FrameworkBarrier: it applies
// manifests/barrier/rbac.yaml there. A test's folder is two below the root.
func (c *Cluster) GrantBarrier(t testing.TB, namespace string) {
	t.Helper()
	manifest, err := os.ReadFile("../../manifests/barrier/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	// The file ends with the subject of the RoleBinding, whose namespace
	// kustomize would set.
	granted := string(manifest) + fmt.Sprintf("  namespace: %s\n", namespace)
	if out, err := c.KubectlApply(t.Context(), namespace, granted); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
