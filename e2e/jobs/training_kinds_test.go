//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// TestMoreKinds are the lives of XGBoostJobs, PaddleJobs, JAXJobs and MPIJobs: what their Pods are told, who
// decides, and what kubectl scales.
func TestMoreKinds(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"an XGBoostJob is its master's": func(t *testing.T) {
			j := givenTraining(t, testbed.XGBoostJob, "Master 1, Worker 2").HasPairs(append(numbered("worker", 2), "j-master-0")...)
			wantEnv(t, j, "j-worker-1", map[string]string{
				"MASTER_ADDR": "j-master-0", "MASTER_PORT": "9999", "WORLD_SIZE": "3", "RANK": "2", "WORKER_PORT": "9999", "WORKER_ADDRS": "j-worker-0,j-worker-1",
			})
			j.Run().Has("Created Running").End(0, "j-worker-0").Has("Created Running")
			j.End(0, "j-master-0").Has("Created !Running Succeeded").Counts("Master", counts{Succeeded: 1})
		},
		"an XGBoostJob fails with a worker": func(t *testing.T) {
			j := givenTraining(t, testbed.XGBoostJob, "Master 1, Worker 1").HasPairs("j-master-0", "j-worker-0").Run().Has("Created Running")
			j.End(1, "j-worker-0").Has("Created !Running Failed")
		},
		"a PaddleJob is its servers'": func(t *testing.T) {
			j := givenTraining(t, testbed.PaddleJob, "Master 1, Worker 1").HasPairs("j-master-0", "j-worker-0")
			wantEnv(t, j, "j-worker-0", map[string]string{"PADDLE_MASTER": "j-master-0:36543", "PADDLE_NNODES": "2", "PADDLE_JOB_ID": "j", "PADDLE_TRAINER_NUM": "1"})
			wantEnv(t, j, "j-master-0", map[string]string{"PADDLE_MASTER": "$(POD_IP_DUMMY):36543", "PADDLE_SERVER_NUM": "1"})
			j.Run().Has("Created Running").End(0, "j-master-0").Has("Created !Running Succeeded")
		},
		"a PaddleJob of workers is scaled, and succeeds with all of them": func(t *testing.T) {
			j := givenTraining(t, testbed.PaddleJob, "Worker 1").HasPairs("j-worker-0")
			scale(t, j, "paddlejob", "2")
			j.HasPairs(numbered("worker", 2)...).Run().Counts("Worker", counts{Active: 2}).End(0, "j-worker-0").Has("Created Running")
			j.End(0, "j-worker-1").Has("Created !Running Succeeded")
		},
		"a JAXJob is scaled, and succeeds with all its workers": func(t *testing.T) {
			j := givenTraining(t, testbed.JAXJob, "Worker 2").HasPairs(numbered("worker", 2)...)
			wantEnv(t, j, "j-worker-1", map[string]string{"COORDINATOR_ADDRESS": "j-worker-0", "COORDINATOR_PORT": "6666", "NUM_PROCESSES": "2", "PROCESS_ID": "1"})
			scale(t, j, "jaxjob", "3")
			j.HasPairs(numbered("worker", 3)...).Run().Has("Created Running").End(0, numbered("worker", 3)...).Has("Created !Running Succeeded")
		},
		"an MPIJob runs with all its Pods, and is its launcher's": func(t *testing.T) {
			j := givenTraining(t, testbed.MPIJob, "Launcher 1, Worker 2", "runPolicy: {cleanPodPolicy: All}").HasPods("j-launcher", "j-worker-0", "j-worker-1").HasServices("j")
			wantEnv(t, j, "j-launcher", map[string]string{"OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile", "K_MPI_JOB_ROLE": "launcher"})
			j.Run("j-launcher", "j-worker-0").Has("Created").Run("j-worker-1").Has("Created Running")
			testbed.Eventually(t, "the workers to be found", func(ctx context.Context) (bool, string, error) {
				config, err := cluster.Kube.CoreV1().ConfigMaps(j.Namespace).Get(ctx, "j-config", metav1.GetOptions{})
				if err != nil {
					return false, "", err
				}
				host := "." + "j." + j.Namespace + ".svc"
				return config.Data["hostfile"] == "j-worker-0"+host+" slots=1\nj-worker-1"+host+" slots=1\n" &&
					config.Data["discover_hosts.sh"] == "#!/bin/sh\necho j-worker-0"+host+"\necho j-worker-1"+host+"\n", fmt.Sprint(config.Data), nil
			})
			secret, err := cluster.Kube.CoreV1().Secrets(j.Namespace).Get(t.Context(), "j-ssh", metav1.GetOptions{})
			if err != nil || secret.Type != corev1.SecretTypeSSHAuth || len(secret.Data) != 2 {
				t.Errorf("the Secret is of type %s with %d keys (%v)", secret.Type, len(secret.Data), err)
			}
			j.End(0, "j-launcher").Has("Created !Running Succeeded").HasPods("j-launcher").HasServices("j")
		},
		"an MPIJob's launcher is tried again, and its workers may fail": func(t *testing.T) {
			j := givenTraining(t, testbed.MPIJob, "Launcher 1 Never, Worker 1", "runPolicy: {backoffLimit: 1}").HasPods("j-launcher", "j-worker-0").Run().Has("Created Running")
			before := j.UIDs()
			j.End(1, "j-worker-0").Counts("Worker", counts{Failed: 1}).End(1, "j-launcher").Has("Created Restarting")
			testbed.Eventually(t, "another launcher", replaced(j, before, "j-launcher"))
			j.End(1, "j-launcher").Has("Created !Restarting Failed").Counts("Launcher", counts{Failed: 1})
		},
		"an MPIJob is suspended and resumed": func(t *testing.T) {
			j := givenTraining(t, testbed.MPIJob, "Launcher 1, Worker 1").HasPods("j-launcher", "j-worker-0").Run().Has("Created Running")
			j.Change("{spec: {runPolicy: {suspend: true}}}").Has("Created !Running Suspended").HasPods().HasServices()
			j.Change("{spec: {runPolicy: {suspend: false}}}").HasPods("j-launcher", "j-worker-0").HasServices("j").Run().Has("Created !Suspended Running")
		},
		"gangs of all of them are placed": func(t *testing.T) {
			for kind, replicas := range map[testbed.TrainingKind]string{testbed.XGBoostJob: "Master 1, Worker 2", testbed.PaddleJob: "Worker 3", testbed.JAXJob: "Worker 3", testbed.MPIJob: "Launcher 1, Worker 2"} {
				j := cluster.GivenTrainingJob(t, kind, trainingSpec(kind, replicas, "@∞", "runPolicy: {schedulingPolicy: {}}"))
				if n := j.PodGroup(1).Spec.MinMember; n != 3 {
					t.Errorf("%d Pods have to start together, want 3", n)
				}
				j.Passes("Created Running")
			}
		},
	})
}

// wantEnv wants the first container of a Pod to have variables of these values.
func wantEnv(t *testing.T, j *testbed.TrainingJob, pod string, want map[string]string) {
	t.Helper()
	have := map[string]string{}
	for _, e := range j.Pods()[pod].Spec.Containers[0].Env {
		have[e.Name] = e.Value
	}
	for name, value := range want {
		if have[name] != value {
			t.Errorf("%s of %s is %q, want %q", name, pod, have[name], value)
		}
	}
}

// scale has kubectl scale the workers of a job.
func scale(t *testing.T, j *testbed.TrainingJob, kind, replicas string) {
	t.Helper()
	if out, err := cluster.Kubectl(t.Context(), "-n", j.Namespace, "scale", kind, "j", "--replicas="+replicas); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
