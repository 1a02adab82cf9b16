//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controller tests lockstep-controller as a process: killed, replaced by
// another replica, configured, started where its CRDs are missing, with jobs of every kind. Its
// cluster runs no controller; each test starts its own, as its service account.
package controller

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
		SimulatedNodes: 5, NodeCPU: "100", NodePods: 400, With: "none",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		return c.RunScheduler(ctx, "")
	}))
}
