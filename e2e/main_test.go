//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests Lockstep as its users meet it: on a real API server, with
// the programs as they are shipped, on simulated nodes. Each file is one
// behaviour. Tests share a cluster; each has its own namespace and leaves the nodes
// free. Those that need the nodes for themselves run first, one after the other,
// and then, with t.Parallel, those that wait more than they do.
package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// The shared cluster has room for ten gangs of a hundred Pods of one core.
const (
	nodes       = 10
	coresOfNode = 100
)

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: nodes, NodeCPU: fmt.Sprint(coresOfNode), NodePods: 400, With: "controller,scheduler",
	}, func(_ context.Context, c *testbed.Cluster) error {
		cluster = c
		return nil
	}))
}
