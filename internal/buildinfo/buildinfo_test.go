// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package buildinfo

import (
	"regexp"
	"testing"
)

// TestAVersionIsOurOwnAndThatOfKubernetes: users compare the first part, and the second one with that of their cluster.
func TestAVersionIsOurOwnAndThatOfKubernetes(t *testing.T) {
	if got := Version(); !regexp.MustCompile(`^v\S+ \(Kubernetes v1\.\d+\.\d+\)$`).MatchString(got) {
		t.Errorf("the version is %q", got)
	}
}
