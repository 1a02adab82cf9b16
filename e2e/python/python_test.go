//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package python

import (
	"strings"
	"testing"
)

func TestThePythonPackageRunsJobs(t *testing.T) {
	t.Parallel()
	runs(t, "../../python", python(), "-m", "unittest", "-v", "tests.test_jobs")
}

// TestThePythonPackageHoldsOutThroughTrouble: connections that break, API servers that restart. The package talks to an API
// server of the tests' own.
func TestThePythonPackageHoldsOutThroughTrouble(t *testing.T) {
	t.Parallel()
	runs(t, "../../python", python(), "-m", "unittest", "-v", "tests.test_waiting", "tests.test_following")
}

func TestThePythonPackageHasTypes(t *testing.T) {
	t.Parallel()
	runs(t, "../../python", python(), "-m", "mypy", "lockstep")
}

func TestTheExampleOfTheGoClientRunsAndStopsAGang(t *testing.T) {
	t.Parallel()
	out := runs(t, "../..", "go", "run", "./examples/client", "-image", "lockstep.dev/simulated:any", "-patience", "1m")
	for _, want := range []string{"created example-", " is AttemptRunning", " is Completed"} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not print %q:\n%s", want, out)
		}
	}
}
