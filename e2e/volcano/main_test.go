//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package volcano tests Volcano Jobs as their users meet them: on a real API server, with the
// programs as they are shipped, on simulated nodes. The tests share a cluster and run beside
// each other. One that needs nodes for itself has a room of its own.
package volcano

import (
	"context"
	"os"
	"testing"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Phases, as a watch sees them one after the other.
const (
	pending     = batchv1alpha1.JobPending
	running     = batchv1alpha1.JobRunning
	restarting  = batchv1alpha1.JobRestarting
	aborting    = batchv1alpha1.JobAborting
	aborted     = batchv1alpha1.JobAborted
	terminating = batchv1alpha1.JobTerminating
	terminated  = batchv1alpha1.JobTerminated
	completing  = batchv1alpha1.JobCompleting
	completed   = batchv1alpha1.JobCompleted
	failed      = batchv1alpha1.JobFailed
)

// Actions of Commands.
const (
	abort     = busv1alpha1.ActionAbortJob
	restart   = busv1alpha1.ActionRestartJob
	terminate = busv1alpha1.ActionTerminateJob
	complete  = busv1alpha1.ActionCompleteJob
	resume    = busv1alpha1.ActionResumeJob
)

// tally is what a Job counts.
type tally = testbed.VolcanoTally

// rackLabel is the label of nodes that stands for tier 1 of a topology.
const rackLabel = "tests.lockstep.dev/rack"

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 10, NodeCPU: "100", NodePods: 400, With: "scheduler", Audit: true,
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallVolcanoJobs(ctx); err != nil {
			return err
		}
		return c.RunController(ctx, localenv.ControllerOptions{
			Config: "volcanoJobs: {enabled: true, topologyTiers: {'1': " + rackLabel + "}}\n",
		})
	}))
}

// tell runs stories beside each other.
func tell(t *testing.T, stories map[string]func(t *testing.T)) {
	t.Helper()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}

// given makes a Job j in a namespace of its own; see testbed.CreateVolcanoJob for its spec.
func given(t *testing.T, spec string) *testbed.VolcanoJob {
	t.Helper()
	return cluster.GivenVolcanoJob(t, spec)
}

// inRoom makes a Job j in a namespace of its own, whose Pods go to the nodes of a room.
func inRoom(t *testing.T, room *testbed.Room, spec string) *testbed.VolcanoJob {
	t.Helper()
	return cluster.CreateVolcanoJob(t, cluster.Namespace(t), "j", spec, room)
}
