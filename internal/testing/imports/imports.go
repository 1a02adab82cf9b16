// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports checks in tests what packages import. Its own tests check that no pure package imports a client or a
// clock. Special rules of a package are checked by that package's tests.
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Of returns the packages that the tested package imports directly. Imports of its tests, and the standard library, are
// left out.
func Of(t *testing.T) []string {
	t.Helper()
	listed, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	if err != nil {
		t.Fatalf("listing the imports: %v", err)
	}
	var packages []string
	for line := range strings.Lines(string(listed)) {
		if pkg := strings.TrimSpace(line); strings.Contains(pkg, ".") {
			packages = append(packages, pkg)
		}
	}
	return packages
}

// Only fails the test if Of returns a package that is not in allowed.
func Only(t *testing.T, allowed ...string) {
	t.Helper()
	for _, pkg := range Of(t) {
		if !slices.Contains(allowed, pkg) {
			t.Errorf("the package imports %s", pkg)
		}
	}
}
