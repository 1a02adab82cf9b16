//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kept has jobs of other tools whose Pods come one after the other contend for one cluster, with objects as the
// tools write them, in their order. Room is kept for those that are to come.
package kept

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/upstream"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// cluster and objects are what the tests share: a cluster of 8 cores that keeps room for members to come, and
// lets groups of Volcano's in when there is room. TestMain sets them once, before any test. Each test has the cluster
// for itself.
var (
	cluster *testbed.Cluster
	objects dynamic.Interface
)

const args = `
dialects:
  volcano: {admit: WhenRoom}
  reservation: {namespaces: ["*"], namespacePercent: 100}
`

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{SimulatedNodes: 2, NodeCPU: "4", NodePods: 100, With: "none"}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		client, err := dynamic.NewForConfig(c.Config)
		if err != nil {
			return err
		}
		objects = client
		for _, manifest := range []string{upstream.SchedulerPlugins, upstream.Volcano} {
			if out, err := c.KubectlApply(ctx, "default", manifest); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
		}
		if err := c.ApplyManifests(ctx, "dialects/scheduler-plugins.yaml", "dialects/volcano.yaml"); err != nil {
			return err
		}
		for _, d := range []dialect.Dialect{dialect.SchedulerPlugins, dialect.Volcano} {
			if out, err := c.Kubectl(ctx, "wait", "--for=condition=Established", "crd/"+d.CRD()); err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
		}
		scheduler, err := c.StartScheduler(ctx, strings.TrimPrefix(args, "\n"), "volcano")
		if err != nil {
			return err
		}
		return scheduler.WaitLog(ctx, `"Dialect of PodGroups" group="scheduling.volcano.sh" on=true mode="Auto" reason="served"`)
	}))
}
