//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"strings"
	"testing"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// Conditions that some tests want never to be True.
const (
	trainingRestarting = kubeflowv1.JobConditionRestarting
	trainingSucceeded  = kubeflowv1.JobConditionSucceeded
	trainingFailed     = kubeflowv1.JobConditionFailed
)

// counts are the Pods that a status counts of a type.
type counts = testbed.PodCounts

// fields are those of a spec that hold replicas, by kind.
var fields = map[testbed.TrainingKind]string{
	testbed.TFJob: "tfReplicaSpecs", testbed.TFJobV1alpha2: "tfReplicaSpecs", testbed.PyTorchJob: "pytorchReplicaSpecs",
	testbed.XGBoostJob: "xgbReplicaSpecs", testbed.PaddleJob: "paddleReplicaSpecs", testbed.JAXJob: "jaxReplicaSpecs", testbed.MPIJob: "mpiReplicaSpecs",
}

// givenTraining makes a job j in a namespace of its own, of replicas such as "Worker 4 OnFailure, PS 2":
// types with their numbers and restartPolicies, if any. Their Pods are in the hands of the test.
// Further fields of the spec follow.
func givenTraining(t *testing.T, kind testbed.TrainingKind, replicas string, more ...string) *testbed.TrainingJob {
	t.Helper()
	return cluster.GivenTrainingJob(t, kind, trainingSpec(kind, replicas, "@?", more...))
}

// trainingSpec is a spec of replicas as givenTraining has them, with a template.
func trainingSpec(kind testbed.TrainingKind, replicas, template string, more ...string) string {
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
