//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestWhenAJobRuns(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"it is Created while its Pods wait, and Running with its first worker": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 4, PS 2").HasPairs(append(numbered("worker", 4), numbered("ps", 2)...)...)
			j.Has("Created").Counts("Worker", counts{}).Stays(2 * time.Second)
			j.Run("j-worker-2").Has("Created Running").Counts("Worker", counts{Active: 1})
			j.Run().Counts("Worker", counts{Active: 4}).Counts("PS", counts{Active: 2}).Has("Created Running")
		},
		"what is deleted while it waits comes back under its name": func(t *testing.T) {
			all := append(numbered("worker", 4), numbered("ps", 2)...)
			j := givenTraining(t, testbed.TFJob, "Worker 4, PS 2").HasPairs(all...)
			before := j.UIDs()
			j.Kill("j-ps-1").Kill("j-worker-3").KillService("j-ps-0").End(0, "j-worker-2")
			testbed.Eventually(t, "the two Pods to be others", replaced(j, before, "j-ps-1", "j-worker-3"))
			j.HasPairs(all...).Counts("Worker", counts{Succeeded: 1}).Has("Created").Never(trainingRestarting)
		},
		"what has ended is not run again": func(t *testing.T) {
			all := append(numbered("ps", 2), "j-worker-3", "j-worker-2", "j-worker-1", "j-worker-0")
			j := givenTraining(t, testbed.TFJob, "Worker 4, PS 2").HasPairs(all...).End(0, all...)
			j.Has("Created Succeeded").Counts("Worker", counts{Succeeded: 4}).Counts("PS", counts{Succeeded: 2})
			if j.Status().CompletionTime == nil {
				t.Error("there is no completionTime")
			}
			left := slices.DeleteFunc(all, func(name string) bool { return name == "j-worker-1" })
			j.Kill("j-worker-1").HasPods(left...).Stays(2 * time.Second)
		},
		"parameter servers alone run and succeed, too": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "PS 1").Run("j-ps-0").Has("Created Running")
			j.End(0, "j-ps-0").Has("Created !Running Succeeded").InPhase(kubeflowv1.JobSucceeded)
		},
	})
}

func TestWhatBecomesOfAPodThatEnds(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"an exit code from 128 on has it made anew": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 1 ExitCode").HasPairs("j-worker-0")
			before := j.UIDs()
			j.End(130, "j-worker-0").Passes("Created Restarting").Tells(corev1.EventTypeWarning, "ExitedWithCode", "130")
			testbed.Eventually(t, "another Pod", replaced(j, before, "j-worker-0"))
			j.Run("j-worker-0").Has("Created Running").Never(trainingFailed)
			if n := j.Told("ExitedWithCode"); n != 1 {
				t.Errorf("the exit code was told %d times", n)
			}
		},
		"an exit code below fails the job": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 1 ExitCode").HasPairs("j-worker-0")
			before := j.UIDs()
			j.End(1, "j-worker-0").Has("Created Failed").Counts("Worker", counts{Failed: 1}).Stays(2 * time.Second)
			if !maps.Equal(j.UIDs(), before) || j.Status().CompletionTime == nil {
				t.Errorf("the Pods are %v, were %v; the status is %+v", j.UIDs(), before, j.Status())
			}
		},
		"an eviction has it made anew, as often as it comes": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 2 ExitCode").HasPairs(numbered("worker", 2)...).Run().Has("Created Running")
			for _, end := range []func(){func() { j.Evict("j-worker-1") }, func() { j.End(210, "j-worker-1") }} {
				before := j.UIDs()
				end()
				testbed.Eventually(t, "another Pod", replaced(j, before, "j-worker-1"))
				j.Passes("Created Restarting").Run("j-worker-1").Passes("Created Running")
			}
			j.Never(trainingFailed)
		},
		"PyTorch's workers are made anew after an eviction by themselves": func(t *testing.T) {
			j := givenTraining(t, testbed.PyTorchJob, "Master 1, Worker 2 OnFailure").HasPairs(append(numbered("worker", 2), "j-master-0")...).Run().Has("Created Running")
			before := j.UIDs()
			j.Evict("j-worker-0").Passes("Created Restarting")
			testbed.Eventually(t, "another Pod", replaced(j, before, "j-worker-0"))
			j.Run("j-worker-0").Passes("Created Running").Never(trainingFailed)
		},
		"a Pod that somebody deletes is no failure, however long it takes to end": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 2 OnFailure").HasPairs(numbered("worker", 2)...).Run().Has("Created Running")
			before := j.UIDs()
			j.Hold("j-worker-1").Kill("j-worker-1").Has("Created Restarting").Stays(3 * time.Second)
			cluster.Release(t, j.Namespace)
			testbed.Eventually(t, "another Pod", replaced(j, before, "j-worker-1"))
			j.Has("Created Restarting").Run("j-worker-1").Has("Created Running").Never(trainingFailed)
			for _, s := range j.Statuses() {
				if n := s.ReplicaStatuses["Worker"].Failed; n != 0 {
					t.Errorf("%d workers were counted as failed", n)
				}
			}
		},
		"a job that has failed for good has a completionTime, and goes when its time is up": func(t *testing.T) {
			j := givenTraining(t, testbed.PyTorchJob, "Master 1 ExitCode, Worker 1 ExitCode", "runPolicy: {ttlSecondsAfterFinished: 3}").HasPairs("j-master-0", "j-worker-0")
			j.End(1, "j-worker-0").Has("Created Failed")
			wantGoneAfter(t, j, 3*time.Second)
		},
	})
}

func TestWhenAPyTorchJobSucceeds(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"without a master, when one of its elastic workers has": func(t *testing.T) {
			j := givenTraining(t, testbed.PyTorchJob, "Worker 2", "elasticPolicy: {}").HasPairs(numbered("worker", 2)...).Run().Has("Created Running")
			j.End(0, "j-worker-1").Has("Created !Running Succeeded")
		},
		"with a master, when that has": func(t *testing.T) {
			j := givenTraining(t, testbed.PyTorchJob, "Master 1, Worker 2").HasPairs(append(numbered("worker", 2), "j-master-0")...)
			j.End(0, "j-master-0").Has("Created Succeeded").Counts("Master", counts{Succeeded: 1})
			const want = "training.kubeflow.org/job-name=j,training.kubeflow.org/operator-name=pytorchjob-controller,training.kubeflow.org/replica-type=master"
			if selector := j.Status().ReplicaStatuses["Master"].Selector; selector != want {
				t.Errorf("the selector is %s, want %s", selector, want)
			}
		},
		"without either, when all workers have": func(t *testing.T) {
			j := givenTraining(t, testbed.PyTorchJob, "Worker 2").HasPairs(numbered("worker", 2)...).Run().Has("Created Running")
			j.End(0, "j-worker-0").Counts("Worker", counts{Active: 1, Succeeded: 1}).Has("Created Running")
			j.End(0, "j-worker-1").Has("Created !Running Succeeded")
		},
	})
}

// TestAPyTorchJobIsScaled by kubectl, and its scale follows what runs.
func TestAPyTorchJobIsScaled(t *testing.T) {
	t.Parallel()
	j := givenTraining(t, testbed.PyTorchJob, "Worker 2").HasPairs(numbered("worker", 2)...)
	if out, err := cluster.Kubectl(t.Context(), "-n", j.Namespace, "scale", "pytorchjob", "j", "--replicas=3"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	j.HasPairs(numbered("worker", 3)...).Run().Counts("Worker", counts{Active: 3})
	out, err := cluster.Kubectl(t.Context(), "-n", j.Namespace, "get", "pytorchjob", "j", "--subresource=scale", "-o", "jsonpath={.spec.replicas} {.status.replicas}")
	if err != nil || out != "3 3" {
		t.Errorf("the scale is %q (%v), want 3 of 3", out, err)
	}
}

// TestOneBadJobHindersNoOther: its template is one that the API server refuses.
func TestOneBadJobHindersNoOther(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	bad := cluster.CreateTrainingJob(t, namespace, testbed.TFJob, "bad", "{tfReplicaSpecs: {Worker: {@?{dnsPolicy: Nonsense}}}}", nil)
	var good []*testbed.TrainingJob
	for i := range 20 {
		good = append(good, cluster.CreateTrainingJob(t, namespace, testbed.TFJob, fmt.Sprintf("good%d", i), trainingSpec(testbed.TFJob, "Worker 1", "@?"), nil))
	}
	bad.Has("Created Failed").Tells(corev1.EventTypeWarning, "FailedCreatePod", "dnsPolicy").HasPods()
	for _, j := range good {
		j.Run(j.Name + "-worker-0").Has("Created Running")
	}
}

// TestTwoJobsThatWantTheSameNames are of two kinds. The later one touches nothing of the first,
// and runs when that is gone.
func TestTwoJobsThatWantTheSameNames(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	first := cluster.CreateTrainingJob(t, namespace, testbed.TFJob, "a", trainingSpec(testbed.TFJob, "Worker 1", "@?"), nil).HasPairs("a-worker-0").Run().Has("Created Running")
	second := cluster.CreateTrainingJob(t, namespace, testbed.PyTorchJob, "a", trainingSpec(testbed.PyTorchJob, "Worker 1", "@?"), nil)
	second.Tells(corev1.EventTypeWarning, "NameTaken", "a-worker-0").HasPairs()
	first.HasPairs("a-worker-0").Stays(time.Second)
	first.Remove()
	first.IsGone()
	second.HasPairs("a-worker-0").Run().Has("Created Running")
}
