//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
)

func TestThePythonPackageFollowsLogs(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), cmp.Or(os.Getenv("PYTHON"), "python3"), "-m", "unittest", "-v", "tests.test_logs")
	cmd.Dir = "../../python"
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig, "NAMESPACE="+cluster.Namespace(t), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
