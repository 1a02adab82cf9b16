//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring reads the metrics of both programs as Prometheus does, while jobs run.
package monitoring

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// The tests share a cluster, and where the programs serve their metrics. TestMain sets them once, before any test.
var (
	cluster                             *testbed.Cluster
	controllerAddress, schedulerAddress string
)

const config = `
leaderElection: {enabled: true}
volcanoJobs: {enabled: true}
kubeflowJobs: {enabled: true, takeJobs: All}
`

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{SimulatedNodes: 4, NodeCPU: "8", NodePods: 100, With: "none"}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		var err error
		if schedulerAddress, err = testbed.FreeAddress(); err != nil {
			return err
		}
		scheduler, err := c.StartSchedulerWith(ctx, localenv.SchedulerOptions{
			Elected: true, Args: "dialects: {reservation: {namespaces: ['*'], namespacePercent: 100}}", Address: schedulerAddress,
		})
		if err != nil {
			return err
		}
		if controllerAddress, err = testbed.FreeAddress(); err != nil {
			return err
		}
		host, port, err := net.SplitHostPort(controllerAddress)
		if err != nil {
			return err
		}
		if err := c.RunController(ctx, localenv.ControllerOptions{Config: config, Args: []string{"--bind-address=" + host, "--secure-port=" + port}}); err != nil {
			return err
		}
		return scheduler.WaitLog(ctx, `"What is served"`)
	}))
}
