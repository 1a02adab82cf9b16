//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestJobsEndByThemselves(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"a Job whose Pods all succeed is Completed, and they stay": func(t *testing.T) {
			j := given(t, "{tasks: [{name: ps, replicas: 2, @3→0}, {name: worker, replicas: 5, @3→0}]}")
			j.Passes(pending, running, completed).Counts(tally{Succeeded: 7})
			j.HasPods("j-ps-0", "j-ps-1", "j-worker-0", "j-worker-1", "j-worker-2", "j-worker-3", "j-worker-4")
			pod := j.Pod("j-worker-4")
			wantLabels := map[string]string{
				batchv1alpha1.KeyJobName: "j", batchv1alpha1.KeyJobNamespace: j.Namespace, batchv1alpha1.KeyTaskName: "worker",
				batchv1alpha1.KeyTaskIndex: "4", batchv1alpha1.KeyQueueName: "default",
			}
			wantAnnotations := map[string]string{
				batchv1alpha1.KeyJobName: "j", batchv1alpha1.KeyTaskName: "worker", batchv1alpha1.KeyTaskIndex: "4", batchv1alpha1.KeyQueueName: "default",
				batchv1alpha1.KeyJobVersion: "0", batchv1alpha1.KeyJobRetryCount: "0", batchv1alpha1.KeyTemplateUID: "j-worker",
				batchv1alpha1.KeyGroupName: "j-" + string(j.UID),
			}
			if diff := cmp.Diff(wantLabels, only(pod.Labels, wantLabels)); diff != "" {
				t.Errorf("labels of a Pod (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(wantAnnotations, only(pod.Annotations, wantAnnotations)); diff != "" {
				t.Errorf("annotations of a Pod (-want,+got):\n%s", diff)
			}
			var entered []batchv1alpha1.JobPhase
			for _, condition := range j.Status().Conditions {
				entered = append(entered, condition.Status)
			}
			if want := []batchv1alpha1.JobPhase{pending, running, completed}; !slices.Equal(entered, want) {
				t.Errorf("conditions %v, want %v", entered, want)
			}
		},
		"a Job with one failed Pod runs to its end and is Failed": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 3, @4→0}, {name: b, replicas: 1, @1→1}]}")
			j.Passes(pending, running, failed).Counts(tally{Succeeded: 3, Failed: 1})
		},
		"a task that lacks its own minimum fails the Job": func(t *testing.T) {
			given(t, "{minAvailable: 2, tasks: [{name: a, replicas: 2, minAvailable: 1, @2→0}, {name: b, replicas: 1, minAvailable: 1, @2→1}]}").
				Passes(failed).Counts(tally{Succeeded: 2, Failed: 1})
		},
		"minima of tasks that minAvailable has no room for don't count": func(t *testing.T) {
			given(t, "{minAvailable: 2, tasks: [{name: a, replicas: 2, @2→0}, {name: b, replicas: 1, @2→1}]}").
				Passes(completed).Counts(tally{Succeeded: 2, Failed: 1})
		},
		"a minimum that is not given is the sum of those of the tasks, and the spec stays as it is": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, minAvailable: 1, @∞}, {name: b, replicas: 3, @∞}]}")
			before := specOf(t, j)
			j.Passes(running)
			if got := j.Status().MinAvailable; got != 4 {
				t.Errorf("minAvailable in force is %d, want 4", got)
			}
			if after := specOf(t, j); after != before {
				t.Errorf("the spec was %s and is %s", before, after)
			}
		},
		"a Pod that somebody deletes is made again, one that had ended is not": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, @∞}, {name: b, replicas: 1, @1→0}]}")
			j.Passes(running).Counts(tally{Running: 2, Succeeded: 1})
			before := j.UIDs()
			j.Kill("j-a-1").Kill("j-b-0")
			// Until it runs the status may be that of the time before.
			testbed.Eventually(t, "another Pod j-a-1 to run", func(context.Context) (bool, string, error) {
				pod, exists := j.Pods()["j-a-1"]
				if !exists || pod.UID == before["j-a-1"] {
					return false, "there is none", nil
				}
				return pod.Status.Phase == corev1.PodRunning, string(pod.Status.Phase), nil
			})
			j.Counts(tally{Running: 2, Succeeded: 1}).HasPods("j-a-0", "j-a-1")
			// It was Pending for a moment, without its minimum.
			j.Is("be Running", func(s *batchv1alpha1.JobStatus) bool { return s.State.Phase == running })
			j.Stays(2*time.Second).HasPods("j-a-0", "j-a-1")
		},
		"minSuccess completes the Job at once, and what still runs goes": func(t *testing.T) {
			j := given(t, "{minSuccess: 2, tasks: [{name: short, replicas: 3, @3→0}, {name: long, replicas: 2, @∞}]}")
			j.Passes(pending, running, completed).Never(completing, failed)
			j.Is("have no Pod left that runs", func(s *batchv1alpha1.JobStatus) bool {
				return s.Succeeded >= 2 && s.Running == 0 && s.Terminating == 0
			})
			for name := range j.UIDs() {
				if name == "j-long-0" || name == "j-long-1" {
					t.Errorf("Pod %s is still there", name)
				}
			}
		},
		"minSuccess that is not reached fails the Job": func(t *testing.T) {
			given(t, "{minSuccess: 3, tasks: [{name: a, replicas: 2, @2→0}, {name: b, replicas: 1, @2→1}]}").
				Passes(failed).Counts(tally{Succeeded: 2, Failed: 1})
		},
		"minSuccess that is reached completes the Job, whatever has failed": func(t *testing.T) {
			given(t, "{minSuccess: 2, tasks: [{name: a, replicas: 2, @4→0}, {name: b, replicas: 1, @1→1}]}").
				Passes(completed).Counts(tally{Succeeded: 2, Failed: 1})
		},
		"tasks without names are called by their places": func(t *testing.T) {
			given(t, "{tasks: [{replicas: 1, @∞}, {replicas: 1, dependsOn: {name: [default0]}, @∞}]}").
				Passes(running).HasPods("j-default0-0", "j-default1-0")
		},
	})
}

func TestJobsAreDeletedWhenTheirTimeIsUp(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"seconds after it was Completed": func(t *testing.T) {
			j := given(t, "{ttlSecondsAfterFinished: 5, tasks: [{name: a, replicas: 1, @2→0}]}").Passes(completed)
			ended := j.Status().State.LastTransitionTime
			j.IsGone()
			if kept := time.Since(ended.Time); kept < 5*time.Second {
				t.Errorf("it was gone %v after its end, want at least 5s", kept)
			}
		},
		"at once": func(t *testing.T) {
			given(t, "{ttlSecondsAfterFinished: 0, tasks: [{name: a, replicas: 1, @2→0}]}").IsGone()
		},
		"after it was terminated, too": func(t *testing.T) {
			given(t, "{ttlSecondsAfterFinished: 2, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running).Do(terminate).Passes(terminated).IsGone()
		},
		"but not while it can be resumed": func(t *testing.T) {
			given(t, "{ttlSecondsAfterFinished: 1, tasks: [{name: a, replicas: 1, @∞}]}").Passes(running).Do(abort).Passes(aborted).Stays(4 * time.Second)
		},
	})
}

// TestAThousandPodsCostAFewWrites: neither of the status, nor of the objects of plugins. They say
// that they are of one template.
func TestAThousandPodsCostAFewWrites(t *testing.T) {
	t.Parallel()
	j := given(t, "{plugins: {svc: []}, tasks: [{name: a, replicas: 1000, @20→0}]}")
	j.Passes(pending, running, completed).Counts(tally{Succeeded: 1000})
	const most = 50
	if writes := j.Writes(); writes > most {
		t.Errorf("the Job was written %d times, want at most %d", writes, most)
	}
	for name, pod := range j.Pods() {
		if got := pod.Annotations[batchv1alpha1.KeyTemplateUID]; got != "j-a" {
			t.Fatalf("Pod %s is of the template %q, want j-a", name, got)
		}
	}
}

func TestNamesOfJobs(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"one of 60 characters gives Pods their full names": func(t *testing.T) {
			const name = "a-name-of-sixty-characters-which-is-about-as-long-as-can-be1"
			j := cluster.CreateVolcanoJob(t, cluster.Namespace(t), name, "{plugins: {ssh: [], env: []}, tasks: [{name: worker, replicas: 2, @∞}]}", nil)
			j.Passes(running).HasPods(name+"-worker-0", name+"-worker-1")
		},
		"one with which host names are too long is told so": func(t *testing.T) {
			const name = "a-name-of-sixty-characters-which-is-about-as-long-as-can-be1"
			j := cluster.CreateVolcanoJob(t, cluster.Namespace(t), name, "{plugins: {svc: []}, tasks: [{name: worker, replicas: 2, @∞}]}", nil)
			j.Passes(pending).Tells(corev1.EventTypeWarning, "FailedCreate", "spec.hostname")
		},
		"a Pod of somebody else under a needed name is waited for, and not taken over": func(t *testing.T) {
			namespace := cluster.Namespace(t)
			foreign := testbed.MakePod("j-a-1", func(pod *corev1.Pod) { pod.Spec.SchedulerName = "nobodys" })
			cluster.CreatePod(t, namespace, foreign)
			j := cluster.CreateVolcanoJob(t, namespace, "j", "{tasks: [{name: a, replicas: 2, @∞}]}", nil)
			j.Passes(pending).Tells(corev1.EventTypeWarning, "FailedCreate", "j-a-1").Never(running)
			live, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), "j-a-1", metav1.GetOptions{})
			if err != nil || live.DeletionTimestamp != nil || len(live.OwnerReferences) > 0 {
				t.Errorf("the foreign Pod is now %v (%v)", live, err)
			}
			cluster.DeletePod(t, namespace, "j-a-1")
			j.Passes(running).Counts(tally{Running: 2})
		},
		"Jobs whose Pods would have the same names wait for each other": func(t *testing.T) {
			namespace := cluster.Namespace(t)
			first := cluster.CreateVolcanoJob(t, namespace, "a", "{tasks: [{name: b-c, replicas: 1, @∞}]}", nil)
			first.Passes(running)
			second := cluster.CreateVolcanoJob(t, namespace, "a-b", "{tasks: [{name: c, replicas: 1, @∞}]}", nil)
			second.Passes(pending).Tells(corev1.EventTypeWarning, "FailedCreate", "a-b-c-0").Never(running)
			if err := cluster.Lockstep.BatchV1alpha1().Jobs(namespace).Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			first.IsGone()
			second.Passes(running)
		},
		"a Job that is made anew under its name has Pods of its own": func(t *testing.T) {
			first := given(t, "{tasks: [{name: a, replicas: 2, @∞}]}").Passes(running)
			before := first.UIDs()
			if err := cluster.Lockstep.BatchV1alpha1().Jobs(first.Namespace).Delete(t.Context(), "j", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			first.IsGone()
			second := cluster.CreateVolcanoJob(t, first.Namespace, "j", "{tasks: [{name: a, replicas: 2, @∞}]}", nil)
			second.Passes(pending, running).Counts(tally{Running: 2})
			for name, uid := range second.UIDs() {
				if uid == before[name] {
					t.Errorf("Pod %s is that of the earlier Job", name)
				}
			}
		},
	})
}

// TestAJobThatMakesNoSenseIsTold of what no rule of a CRD finds.
func TestAJobThatMakesNoSenseIsTold(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ spec, want string }{
		"dependencies that lead back": {"{tasks: [{name: a, replicas: 1, dependsOn: {name: [c]}, @∞}, {name: b, replicas: 1, dependsOn: {name: [a]}, @∞}, {name: c, replicas: 1, dependsOn: {name: [b]}, @∞}]}", "dependsOn"},
		"ray without its head":        {"{plugins: {ray: []}, tasks: [{name: worker, replicas: 1, @∞}]}", "head"},
		"mpi without its master":      {"{plugins: {mpi: []}, tasks: [{name: worker, replicas: 1, @∞}]}", "master"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := given(t, tc.spec).Passes(pending)
			j.Is("say why", func(s *batchv1alpha1.JobStatus) bool { return s.State.Reason == "InvalidJob" && s.State.Message != "" })
			j.Tells(corev1.EventTypeWarning, "InvalidJob", tc.want).HasPods()
		})
	}
}

// only is what a map holds under the keys of another.
func only(m, keys map[string]string) map[string]string {
	out := map[string]string{}
	for key := range keys {
		if value, ok := m[key]; ok {
			out[key] = value
		}
	}
	return out
}

// specOf is the spec of a Job as it is stored.
func specOf(t *testing.T, j *testbed.VolcanoJob) string {
	t.Helper()
	job, err := cluster.Lockstep.BatchV1alpha1().Jobs(j.Namespace).Get(t.Context(), j.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(job.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
