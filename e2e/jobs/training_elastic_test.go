//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"testing"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestAnElasticJob is scaled by an autoscaler while it runs, and only then.
func TestAnElasticJob(t *testing.T) {
	t.Parallel()
	const elastic = "elasticPolicy: {minReplicas: 1, maxReplicas: 3, maxRestarts: 3, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 80}}}]}"
	j := givenTraining(t, testbed.PyTorchJob, "Worker 1", elastic).HasPairs("j-worker-0").IsScaled(true)
	spec := j.Autoscaler().Spec
	if target := spec.ScaleTargetRef; target.Kind != kubeflowv1.PyTorchJobKind || target.Name != "j" || *spec.MinReplicas != 1 || spec.MaxReplicas != 3 || len(spec.Metrics) != 1 {
		t.Errorf("the autoscaler is %+v", spec)
	}
	pod := j.Pod("j-worker-0")
	for name, want := range map[string]string{
		"PET_RDZV_BACKEND": "c10d", "PET_NNODES": "1:3", "PET_RDZV_ENDPOINT": "j-worker-0:23456", "PET_MAX_RESTARTS": "3", "MASTER_ADDR": "", "RANK": "",
	} {
		if got, _ := testbed.EnvOf(pod, "pytorch", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if pod.Labels[kubeflowv1.KeyJobRole] != kubeflowv1.JobRoleMaster {
		t.Errorf("the labels of worker 0 are %v", pod.Labels)
	}
	j.Change("{spec: {runPolicy: {suspend: true}}}").IsScaled(false).HasPairs()
	j.Change("{spec: {runPolicy: {suspend: false}}}").IsScaled(true).HasPairs("j-worker-0")
	j.End(0, "j-worker-0").InPhase(kubeflowv1.JobSucceeded).IsScaled(false)
}
