//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kubeflow tests training jobs of all kinds as their users meet them: on a real API server,
// with the programs as they are shipped. The tests share a cluster and run beside each other.
// Most Pods are in the hands of their tests, which do to them what a kubelet would. Those that
// are placed are on simulated nodes.
package kubeflow

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// Conditions that some tests want never to be True.
const (
	restarting = kubeflowv1.JobConditionRestarting
	succeeded  = kubeflowv1.JobConditionSucceeded
	failed     = kubeflowv1.JobConditionFailed
)

// counts are the Pods that a status counts of a type.
type counts = testbed.PodCounts

// cluster is what the tests share. TestMain sets it once, before any test.
var cluster *testbed.Cluster

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{
		SimulatedNodes: 10, NodeCPU: "100", NodePods: 400, With: "scheduler",
	}, func(ctx context.Context, c *testbed.Cluster) error {
		cluster = c
		if err := c.InstallKubeflowJobs(ctx); err != nil {
			return err
		}
		return c.RunController(ctx, localenv.WithKubeflowJobs("takeJobs: All"))
	}))
}

// tell runs stories beside each other.
func tell(t *testing.T, stories map[string]func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t)
		})
	}
}

// fields are those of a spec that hold replicas, by kind.
var fields = map[testbed.TrainingKind]string{
	testbed.TFJob: "tfReplicaSpecs", testbed.TFJobV1alpha2: "tfReplicaSpecs", testbed.PyTorchJob: "pytorchReplicaSpecs",
	testbed.XGBoostJob: "xgbReplicaSpecs", testbed.PaddleJob: "paddleReplicaSpecs", testbed.JAXJob: "jaxReplicaSpecs", testbed.MPIJob: "mpiReplicaSpecs",
}

// given makes a job j in a namespace of its own, of replicas such as "Worker 4 OnFailure, PS 2":
// types with their numbers and restartPolicies, if any. Their Pods are in the hands of the test.
// Further fields of the spec follow.
func given(t *testing.T, kind testbed.TrainingKind, replicas string, more ...string) *testbed.TrainingJob {
	t.Helper()
	return cluster.GivenTrainingJob(t, kind, specOf(kind, replicas, "@?", more...))
}

// specOf is a spec of replicas as given has them, with a template.
func specOf(kind testbed.TrainingKind, replicas, template string, more ...string) string {
	var types []string
	for part := range strings.SplitSeq(replicas, ", ") {
		words := strings.Fields(part)
		policy := ""
		if len(words) > 2 {
			policy = "restartPolicy: " + words[2] + ", "
		}
		types = append(types, fmt.Sprintf("%s: {replicas: %s, %s%s}", words[0], words[1], policy, template))
	}
	of := fmt.Sprintf("%s: {%s}", fields[kind], strings.Join(types, ", "))
	return "{" + strings.Join(append([]string{of}, more...), ", ") + "}"
}

// numbered are the names of the Pods of a type of the job j, and of their Services.
func numbered(replicas string, n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("j-%s-%d", replicas, i))
	}
	return names
}
