//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// replaced says whether Pods of a job are others than before, and are not being deleted.
func replaced(j *testbed.TrainingJob, before map[string]types.UID, names ...string) func(context.Context) (bool, string, error) {
	return func(context.Context) (bool, string, error) {
		now := j.UIDs()
		for _, name := range names {
			if now[name] == "" || now[name] == before[name] {
				return false, fmt.Sprint(now), nil
			}
		}
		return true, "", nil
	}
}

// wantGoneAfter wants a job that has ended to be deleted so long after its completionTime, with
// its Pods, and not before.
func wantGoneAfter(t *testing.T, j *testbed.TrainingJob, ttl time.Duration) {
	t.Helper()
	j.IsGone()
	completed := j.Status().CompletionTime
	if completed == nil {
		t.Fatal("there was no completionTime")
	}
	if took := time.Since(completed.Time); took < ttl {
		t.Errorf("it was gone %v after its completionTime, want %v", took, ttl)
	}
	j.HasPods()
}

// TestADeadlineEndsAJobThatNothingHappensTo, with all or with nothing of it left.
func TestADeadlineEndsAJobThatNothingHappensTo(t *testing.T) {
	const deadline = 6 * time.Second
	all := append(numbered("worker", 4), numbered("ps", 2)...)
	// Nobody but the deadline says when it is over: its Pods run on a simulated node.
	job := func(t *testing.T, policy string) *testbed.TrainingJob {
		spec := trainingSpec(testbed.TFJob, "Worker 4, PS 2", "@∞", "runPolicy: {schedulingPolicy: {}, "+policy+"}")
		return cluster.GivenTrainingJob(t, testbed.TFJob, spec)
	}
	onTime := func(t *testing.T, j *testbed.TrainingJob) {
		t.Helper()
		s := j.InPhase(kubeflowv1.JobFailed).Status()
		if active := s.CompletionTime.Sub(s.StartTime.Time); active < deadline || active > time.Minute {
			t.Errorf("it was active for %v, want about %v", active, deadline)
		}
	}
	tell(t, map[string]func(t *testing.T){
		"and its Pods go": func(t *testing.T) {
			j := job(t, "activeDeadlineSeconds: 6, cleanPodPolicy: All")
			onTime(t, j)
			j.HasPairs()
		},
		"and its Pods stop, where they stay": func(t *testing.T) {
			j := job(t, "activeDeadlineSeconds: 6, cleanPodPolicy: None")
			onTime(t, j)
			j.HasPairs(all...)
			testbed.Eventually(t, "all Pods to be given a second", func(context.Context) (bool, string, error) {
				for name, pod := range j.Pods() {
					if seconds := pod.Spec.ActiveDeadlineSeconds; seconds == nil || *seconds != 1 {
						return false, "Pod " + name + " is not", nil
					}
				}
				return true, "", nil
			})
		},
		"and none does where there is none": func(t *testing.T) {
			job(t, "cleanPodPolicy: All").HasPairs(all...).Counts("Worker", counts{Active: 4}).Counts("PS", counts{Active: 2}).Stays(deadline)
		},
	})
}

func TestABackoffLimit(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"counts the restarts of containers in all Pods that may be restarted": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 4 OnFailure, PS 2 Never", "runPolicy: {backoffLimit: 4, cleanPodPolicy: All}")
			j.HasPairs(append(numbered("worker", 4), numbered("ps", 2)...)...).Run().Has("Created Running")
			j.Restarted(1, numbered("worker", 4)...).Has("Created !Running Failed").HasPairs()
		},
		"is reached, and not before": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 2 OnFailure", "runPolicy: {backoffLimit: 3}").HasPairs(numbered("worker", 2)...)
			j.Restarted(1, numbered("worker", 2)...).Counts("Worker", counts{Active: 2}).Stays(2 * time.Second)
			j.Restarted(2, "j-worker-0").Has("Created !Running Failed")
		},
		"of zero is reached by the first restart": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 2 OnFailure", "runPolicy: {backoffLimit: 0}").HasPairs(numbered("worker", 2)...)
			j.Run().Counts("Worker", counts{Active: 2}).Stays(2 * time.Second)
			j.Restarted(1, "j-worker-0").Has("Created !Running Failed")
		},
		"counts Pods that were made anew because they failed": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 1 ExitCode", "runPolicy: {backoffLimit: 2}").HasPairs("j-worker-0")
			before := j.UIDs()
			j.End(137, "j-worker-0").Passes("Created Restarting")
			testbed.Eventually(t, "another Pod", replaced(j, before, "j-worker-0"))
			j.End(137, "j-worker-0").Is("have failed", func(s *kubeflowv1.JobStatus) bool { return s.Phase == kubeflowv1.JobFailed })
		},
		"counts no Pods that others have deleted": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 1 OnFailure", "runPolicy: {backoffLimit: 1}").HasPairs("j-worker-0")
			for range 3 {
				before := j.Run("j-worker-0").Passes("Created Running").UIDs()
				j.Hold("j-worker-0").Kill("j-worker-0").Passes("Created Restarting")
				cluster.Release(t, j.Namespace)
				testbed.Eventually(t, "another Pod", replaced(j, before, "j-worker-0"))
			}
			j.Never(trainingFailed)
		},
	})
	for _, policy := range []string{"None", "Running", "All"} {
		t.Run("leaves what cleanPodPolicy "+policy+" says", func(t *testing.T) {
			t.Parallel()
			// They run on a simulated node: a Pod without one could not be stopped, but by its deletion.
			j := cluster.GivenTrainingJob(t, testbed.PyTorchJob, trainingSpec(testbed.PyTorchJob, "Master 1, Worker 1", "@∞",
				"runPolicy: {backoffLimit: 1, schedulingPolicy: {}, cleanPodPolicy: "+policy+"}"))
			j.HasPairs("j-master-0", "j-worker-0").Counts("Master", counts{Active: 1}).Counts("Worker", counts{Active: 1})
			j.Restarted(3, "j-master-0").Has("Created !Running Failed")
			if policy == "None" {
				j.Stays(time.Second).HasPairs("j-master-0", "j-worker-0")
			} else {
				j.HasPairs()
			}
		})
	}
	t.Run("leaves the Pods that had ended, with their Services", func(t *testing.T) {
		t.Parallel()
		j := givenTraining(t, testbed.PyTorchJob, "Master 1, Worker 1", "runPolicy: {backoffLimit: 1, cleanPodPolicy: Running}").HasPairs("j-master-0", "j-worker-0")
		j.Run().End(0, "j-worker-0").Counts("Worker", counts{Succeeded: 1}).Restarted(1, "j-master-0")
		j.Has("Created !Running Failed").HasPairs("j-worker-0")
	})
}

func TestWhatStaysOfAJobThatHasSucceeded(t *testing.T) {
	t.Parallel()
	all := append(numbered("worker", 3), "j-master-0")
	for policy, left := range map[string][]string{"None": all, "Running": {"j-master-0"}, "All": nil} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			j := givenTraining(t, testbed.PyTorchJob, "Master 1, Worker 3", "runPolicy: {cleanPodPolicy: "+policy+"}").HasPairs(all...)
			j.Run().Has("Created Running").End(0, "j-master-0").Has("Created !Running Succeeded").HasPairs(left...).Stays(time.Second)
		})
	}
}

func TestHowLongAJobIsKept(t *testing.T) {
	t.Parallel()
	for _, code := range []int32{0, 1} {
		for name, tc := range map[string]struct {
			policy string
			ttl    time.Duration
		}{
			"three seconds": {"ttlSecondsAfterFinished: 3", 3 * time.Second},
			"not at all":    {"ttlSecondsAfterFinished: 0", 0},
			"for ever":      {"", -1},
		} {
			t.Run(fmt.Sprintf("%s after exit code %d", name, code), func(t *testing.T) {
				t.Parallel()
				j := givenTraining(t, testbed.TFJob, "Worker 1", "runPolicy: {"+tc.policy+"}").HasPairs("j-worker-0").End(code, "j-worker-0")
				if tc.ttl >= 0 {
					wantGoneAfter(t, j, tc.ttl)
					return
				}
				j.Is("have ended", func(s *kubeflowv1.JobStatus) bool { return s.CompletionTime != nil }).Stays(2 * time.Second)
			})
		}
	}
}
