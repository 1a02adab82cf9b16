//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package room tests gangs that wait for room: on a cluster to which nodes are added when Pods are
// unschedulable, and beside other Pods that would take the room first.
package room

import (
	"context"
	"fmt"
	"os"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// The cluster has four nodes of eight cores in two racks.
const (
	nodes        = 4
	coresOfNode  = 8
	nodesPerRack = 2
)

// rackLabel is the label of nodes that says in which rack they are.
const rackLabel = "tests.lockstep.dev/rack"

// high is the class of the gangs that preempt others.
const high = "e2e-room-high"

// cluster is what the tests share. TestMain sets it once, before any test. The tests need the nodes
// for themselves, and so run one after the other, each with a scheduler of its own.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: nodes, NodeCPU: fmt.Sprint(coresOfNode), With: "none",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		for i := range nodes {
			patch := fmt.Sprintf(`{"metadata": {"labels": {%q: "rack-%d"}}}`, rackLabel, i/nodesPerRack)
			if _, err := c.Kube.CoreV1().Nodes().Patch(ctx, fmt.Sprintf("sim-%d", i), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
				return fmt.Errorf("putting a node into a rack: %w", err)
			}
		}
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: high}, Value: 1000}
		_, err := c.Kube.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{})
		return err
	}))
}
