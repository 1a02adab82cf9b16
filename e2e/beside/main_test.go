//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package beside tests Volcano Jobs and training jobs on a cluster on which Volcano and the training
// operator are installed: with their CRDs, which check little and drop fields that they don't know,
// and with jobs that are for them.
package beside

import (
	"context"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

// ours has the controller run only Volcano Jobs that name its scheduler, as it must beside Volcano.
// Which training jobs it takes is left to the default: those that are Lockstep's by name.
var ours = localenv.ControllerOptions{Config: `
volcanoJobs: {enabled: true, schedulerNames: [` + testbed.GangScheduler + `]}
kubeflowJobs: {enabled: true, foreignCRDs: true}
`}

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 5, NodeCPU: "100", NodePods: 400, With: "scheduler", Audit: true,
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := installVolcano(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		// An administrator has the controller install what is absent. What is there stays.
		installing := ours
		installing.Kubeconfig, installing.Args = c.Kubeconfig, []string{"--install-crds"}
		first, err := c.Cluster.StartController(ctx, installing)
		if err != nil {
			return err
		}
		if err := first.WaitReady(ctx); err != nil {
			return err
		}
		first.Kill()
		return c.RunController(ctx, ours)
	}))
}
