//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli uses kubectl lockstep as a person does: commands in a shell, and what they print.
package cli

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
		SimulatedNodes: 3, NodeCPU: "8", NodePods: 100, With: "scheduler",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		return c.RunController(ctx, localenv.ControllerOptions{
			Config: "volcanoJobs: {enabled: true}\nkubeflowJobs: {enabled: true, takeJobs: All}\n",
		})
	}))
}
