//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode tests Lockstep with real containers: a kubelet and containerd
// on this machine. It needs root on Linux; `make e2e` leaves it out elsewhere.
package realnode

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// images is where `make images` put the image tars.
var images = flag.String("images", "../../bin/images", "folder of the image tars")

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{RealNode: true, RealNodeCPU: "1", With: "scheduler"}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.LoadImages(ctx, *images, "toolbox", "training", "rollcall", "frameworkbarrier"); err != nil {
			return err
		}
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		kubeflow := localenv.WithKubeflowJobs("takeJobs: All")
		return c.RunController(ctx, localenv.WithVolcanoJobs(kubeflow.Config))
	}))
}
