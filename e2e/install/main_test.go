//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install brings Lockstep to a cluster that has a real node and none of its programs: by the
// demo as a guest, by the commands of docs/install.md, and as a static Pod that is the only scheduler.
// It needs root on Linux; `make e2e` leaves it out elsewhere.
package install

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

// repository is where the documented commands are run.
const repository = "../.."

// cluster has a node that runs containers, no scheduler, and the kinds and rights of Lockstep until a
// test uninstalls them. The tests run one after the other, as each finds what the one before has left.
// TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{RealNode: true, RealNodeCPU: "2", With: "none"}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		return c.LoadImages(ctx, *images, "controller", "scheduler", "dashboard", "training")
	}))
}
