//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"testing"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
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
