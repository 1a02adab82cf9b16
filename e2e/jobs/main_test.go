//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs tests jobs of every kind as their users meet them, Frameworks only where they wait for
// a quota: on a real API server, with the programs as they are shipped, on simulated nodes.
// The tests share a cluster and run beside each other. A test that needs nodes for itself has a room
// of its own. Most Pods of training jobs are in the hands of their tests, which do to them what a
// kubelet would.
package jobs

import (
	"context"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// rackLabel is the label of nodes that stands for tier 1 of a topology.
const rackLabel = "tests.lockstep.dev/rack"

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 10, NodeCPU: "100", NodePods: 400, With: "scheduler", Audit: true,
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		if err := serveKueue(ctx, c); err != nil {
			return err
		}
		return c.RunController(ctx, localenv.ControllerOptions{Config: `
volcanoJobs: {enabled: true, schedulerNames: [lockstep-scheduler, volcano, ''], topologyTiers: {'1': ` + rackLabel + `}}
kubeflowJobs: {enabled: true, takeJobs: All}
kueue: {enabled: true}
`})
	}))
}

// tell runs stories beside each other, and beside other tests.
func tell(t *testing.T, stories map[string]func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}
