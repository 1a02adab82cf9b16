//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package users tests what people use: kubectl lockstep in a terminal, the web page in a browser, the
// package for Python, the example for Go, and the metrics of both programs, on a real API server. The
// scheduler answers questions.
package users

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// What the tests share. TestMain sets it once, before any test.
var (
	cluster *testbed.Cluster
	// Both programs serve their metrics there.
	schedulerAddress, controllerAddress string
)

func TestMain(m *testing.M) {
	code := testbed.Main(m, localenv.Options{SimulatedNodes: 6, NodeCPU: "8", NodePods: 2000, With: "none"}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		if err := startScheduler(ctx); err != nil {
			return err
		}
		return startController(ctx)
	})
	closeBrowser()
	os.Exit(code)
}

// startScheduler starts a scheduler, and waits until it leads.
func startScheduler(ctx context.Context) (err error) {
	if schedulerAddress, err = testbed.FreeAddress(); err != nil {
		return err
	}
	scheduler, err := cluster.StartSchedulerWith(ctx, localenv.SchedulerOptions{
		Elected: true, Args: "reservations: {maxPercent: 100, membersToCome: {namespaces: ['*'], namespaceMaxPercent: 100}}",
		Address: schedulerAddress,
	})
	if err != nil {
		return err
	}
	return scheduler.WaitLog(ctx, `"What is served"`)
}

// startController starts a controller of jobs of every kind, and waits until it is ready.
func startController(ctx context.Context) (err error) {
	if controllerAddress, err = testbed.FreeAddress(); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(controllerAddress)
	if err != nil {
		return err
	}
	return cluster.RunController(ctx, localenv.ControllerOptions{
		Config: "leaderElection: {enabled: true}\nvolcanoJobs: {enabled: true, schedulerNames: [lockstep-scheduler, volcano, '']}\nkubeflowJobs: {enabled: true, takeJobs: All}\n",
		Args:   []string{"--bind-address=" + host, "--secure-port=" + port},
	})
}
