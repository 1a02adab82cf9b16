// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package imports holds packages to what they may know, in tests: a test of a package to
// what is special to it, and those here all pure packages to having neither client nor clock.
package imports

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// Of are the packages that the package of the test imports itself, tests aside, but for
// those of the standard library.
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

// Only fails the test if the package imports a package that is not allowed, by Of.
func Only(t *testing.T, allowed ...string) {
	t.Helper()
	for _, pkg := range Of(t) {
		if !slices.Contains(allowed, pkg) {
			t.Errorf("the package imports %s", pkg)
		}
	}
}
