//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package python runs programs of users: the tests of the Python package, and the example of the Go client.
package python

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "scheduler",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		return c.RunController(ctx, localenv.ControllerOptions{})
	}))
}

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
