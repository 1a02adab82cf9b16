//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package users

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// python is the interpreter: hack/python.sh finds one.
func python() string {
	if path := os.Getenv("PYTHON"); path != "" {
		return path
	}
	return "python3"
}

// runs a program in a directory on the cluster, and returns what it prints.
func runs(t *testing.T, directory string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = directory
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "NAMESPACE="+cluster.Namespace(t), "PYTHONDONTWRITEBYTECODE=1", "MYPY_CACHE_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

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
