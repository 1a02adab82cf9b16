//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// pair is the name of a Pod and a Service of a job of v1alpha2, counted from 1.
func pair(j *testbed.TrainingJob, replicas string, number int) string {
	return fmt.Sprintf("%s-%s-%d-%s", j.Name, replicas, number, j.UID[:8])
}

// pairs are those of a TFJob of 2 parameter servers and 3 workers.
func pairs(j *testbed.TrainingJob) []string {
	return []string{pair(j, "ps", 1), pair(j, "ps", 2), pair(j, "worker", 1), pair(j, "worker", 2), pair(j, "worker", 3)}
}

// givenAsDesigned makes a TFJob of 2 parameter servers and 3 workers through v1alpha2, once all
// its Pods and Services are there. Their templates have a restartPolicy.
func givenAsDesigned(t *testing.T, policy corev1.RestartPolicy) *testbed.TrainingJob {
	t.Helper()
	j := cluster.GivenTrainingJob(t, testbed.TFJobV1alpha2, trainingSpec(testbed.TFJobV1alpha2, "PS 2, Worker 3", fmt.Sprintf("@?{restartPolicy: %s}", policy)))
	return j.HasPairs(pairs(j)...).Has("Created").InPhase(kubeflowv1.JobPending)
}

func TestATFJobOfV1alpha2(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"is a pair of a Pod and a Service for each replica": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			pods, services := j.Pods(), j.Services()
			for _, name := range pairs(j) {
				for _, object := range []metav1.Object{pods[name], services[name]} {
					if owner := metav1.GetControllerOf(object); owner.Kind != kubeflowv1.TFJobKind || owner.UID != j.UID {
						t.Errorf("the owner of %s is %+v", name, owner)
					}
				}
			}
			if s := j.Status(); s.StartTime == nil || len(s.ReplicaStatuses) != 0 || len(s.TFReplicaStatuses) != 2 {
				t.Errorf("the status is %+v", s)
			}
		},
		"tells its programs of each other by arguments, after those of the user": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.TFJobV1alpha2, trainingSpec(testbed.TFJobV1alpha2, "PS 2, Worker 3", "@?{containers: [{name: tensorflow, image: i, args: [--lr=1]}]}"))
			j.HasPairs(pairs(j)...)
			hosts := func(replicas string, n int) string {
				var all []string
				for i := range n {
					all = append(all, pair(j, replicas, i+1)+"."+j.Namespace+".svc:2222")
				}
				return strings.Join(all, ",")
			}
			pod := j.Pod(pair(j, "worker", 2))
			want := []string{"--lr=1", "--ps_hosts=" + hosts("ps", 2), "--worker_hosts=" + hosts("worker", 3), "--job_name=worker", "--task_index=1"}
			if got := pod.Spec.Containers[0].Args; !slices.Equal(got, want) {
				t.Errorf("the arguments of %s are\n%q, want\n%q", pod.Name, got, want)
			}
			config, _ := testbed.EnvOf(pod, "tensorflow", "TF_CONFIG")
			if !strings.HasSuffix(config, `,"task":{"type":"worker","index":1},"environment":"cloud"}`) || !strings.Contains(config, `"ps":["`+pair(j, "ps", 1)+".") {
				t.Errorf("TF_CONFIG is %s", config)
			}
		},
		"that is local tells nothing": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.TFJobV1alpha2, "{tfReplicaSpecs: {Local: {@?}}}")
			pod := j.HasPairs(pair(j, "local", 1)).Pod(pair(j, "local", 1))
			if config, ok := testbed.EnvOf(pod, "tensorflow", "TF_CONFIG"); ok || len(pod.Spec.Containers[0].Args) > 0 {
				t.Errorf("it has the arguments %q and TF_CONFIG %q", pod.Spec.Containers[0].Args, config)
			}
		},
		"is Running once all its Pods run": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			all := pairs(j)
			j.Run(all[:4]...).Counts("Worker", counts{Active: 2}).Counts("PS", counts{Active: 2}).InPhase(kubeflowv1.JobPending).Stays(time.Second)
			j.Run(all[4]).InPhase(kubeflowv1.JobRunning).Has("Created Running")
		},
		"succeeds when all its Pods have, the parameter servers, too": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			all := pairs(j)
			j.Run(all...).InPhase(kubeflowv1.JobRunning).End(0, all[1:]...).Counts("Worker", counts{Succeeded: 3}).Counts("PS", counts{Active: 1, Succeeded: 1})
			j.InPhase(kubeflowv1.JobRunning).Stays(time.Second).End(0, all[0]).InPhase(kubeflowv1.JobSucceeded).HasPairs(all...)
			if s := j.Status(); s.CompletionTime == nil || testbed.ConditionOf(&s, trainingSucceeded) != nil {
				t.Errorf("the status is %+v", s)
			}
		},
		"has failed at once, and has the phase when all have ended": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			j.Run(pairs(j)...).InPhase(kubeflowv1.JobRunning).End(1, pair(j, "worker", 2)).Is("say that it fails", func(s *kubeflowv1.JobStatus) bool {
				c := testbed.ConditionOf(s, trainingFailed)
				return c != nil && c.Status == corev1.ConditionTrue && s.Phase != kubeflowv1.JobFailed && s.CompletionTime == nil
			})
			rest := slices.DeleteFunc(pairs(j), func(name string) bool { return name == pair(j, "worker", 2) })
			j.End(0, rest...).InPhase(kubeflowv1.JobFailed)
			if j.Status().CompletionTime == nil {
				t.Error("there is no completionTime")
			}
		},
		"replaces a Pod that fails, if its template says so": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyOnFailure)
			j.Run(pairs(j)...).InPhase(kubeflowv1.JobRunning)
			before, lost := j.UIDs(), pair(j, "worker", 2)
			j.End(1, lost)
			testbed.Eventually(t, "another Pod of its name", replaced(j, before, lost))
			j.InPhase(kubeflowv1.JobPending).Is("restart", func(s *kubeflowv1.JobStatus) bool {
				c := testbed.ConditionOf(s, trainingRestarting)
				return c != nil && c.Status == corev1.ConditionTrue
			})
			j.Run(lost).InPhase(kubeflowv1.JobRunning).Is("have restarted", func(s *kubeflowv1.JobStatus) bool {
				c := testbed.ConditionOf(s, trainingRestarting)
				return c != nil && c.Status == corev1.ConditionFalse
			})
			j.Never(trainingFailed)
		},
		"is Unknown while a node is not heard from": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			j.Run(pairs(j)...).Has("Created Running").Lose(pair(j, "ps", 1)).InPhase(kubeflowv1.JobUnknown).Has("Created ?Running")
			j.Run(pair(j, "ps", 1)).InPhase(kubeflowv1.JobRunning).Has("Created Running")
		},
		"has what is deleted made again, under the same names": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			before, lost := j.UIDs(), pair(j, "ps", 2)
			j.Kill(lost).KillService(pair(j, "worker", 1))
			testbed.Eventually(t, "another Pod of its name", replaced(j, before, lost))
			j.HasPairs(pairs(j)...)
		},
		"has no runPolicy, and says so": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.TFJobV1alpha2, trainingSpec(testbed.TFJobV1alpha2, "Worker 1", "@?", "runPolicy: {cleanPodPolicy: All}"))
			j.Tells(corev1.EventTypeWarning, "RunPolicyIgnored", "v1alpha2").HasPairs(pair(j, "worker", 1))
		},
		"stays what it is, whoever labels it through whatever version": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			before := j.UIDs()
			for _, version := range []string{"v1", "v1alpha2"} {
				out, err := cluster.Kubectl(t.Context(), "-n", j.Namespace, "label", "tfjobs."+version+".kubeflow.org/j", version+"=seen")
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			j.Run(pairs(j)...).InPhase(kubeflowv1.JobRunning).HasPairs(pairs(j)...)
			if !maps.Equal(j.UIDs(), before) {
				t.Errorf("the Pods are %v, were %v", j.UIDs(), before)
			}
		},
		"leaves no Pod behind when it is deleted through v1": func(t *testing.T) {
			j := givenAsDesigned(t, corev1.RestartPolicyNever)
			j.Remove()
			j.IsGone()
			testbed.Eventually(t, "its Pods and Services to be gone", func(context.Context) (bool, string, error) {
				pods, services := j.Pods(), j.Services()
				return len(pods)+len(services) == 0, fmt.Sprint(len(pods), len(services)), nil
			})
		},
	})
}
