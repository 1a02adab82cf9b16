//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realnode tests Lockstep with real containers: a kubelet and containerd
// on this machine. It needs root on Linux; `make e2e` leaves it out elsewhere.
package realnode

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/framework"
)

// images is where `make images` put the image tars.
var images = flag.String("images", "../../bin/images", "folder of the image tars")

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *framework.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) (code int) {
	ctx := context.Background()
	var err error
	cluster, err = framework.Up(ctx, framework.Options{RealNode: true, RealNodeCPU: "1", With: "controller,scheduler"})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() {
		if err := cluster.Down(ctx); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}()
	for _, image := range []string{"toolbox.tar", "training.tar"} {
		if err := cluster.LoadImage(ctx, filepath.Join(*images, image)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}
