//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crashes tests that nothing of Kubeflow's jobs is lost or done twice when
// lockstep-controller dies, and what its settings change. Its cluster runs no controller; each
// test starts its own, as its service account.
package crashes

import (
	"context"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 5, NodeCPU: "100", NodePods: 400, With: "scheduler",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		return c.InstallKubeflowJobs(ctx)
	}))
}

// start starts a controller with further settings, and waits until it is ready.
func start(t *testing.T, settings string) *testbed.Controller {
	t.Helper()
	controller := cluster.StartController(t, localenv.WithKubeflowJobs("takeJobs: All, "+settings))
	controller.WaitReady(t)
	return controller
}
