// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// The tests of this file lead Volcano Jobs through their lives, and look at what the
// controller asks the API server for.

// withJobs is inCluster with a controller that runs Volcano Jobs.
func withJobs(t *testing.T, test func(t *testing.T, c *cluster)) {
	quiet(t)
	inClusterWith(t, runJobs, test)
}

// runJobs has the controller run Volcano Jobs.
func runJobs(c *cluster) { c.config.VolcanoJobs.Enabled = ptr.To(true) }

// newJob makes the Volcano Job j with tasks of a number of replicas each.
func newJob(tasks ...batchv1alpha1.TaskSpec) *batchv1alpha1.Job {
	return &batchv1alpha1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "j"},
		Spec:       batchv1alpha1.JobSpec{Tasks: tasks},
	}
}

func newTask(name string, replicas int32) batchv1alpha1.TaskSpec {
	return batchv1alpha1.TaskSpec{Name: name, Replicas: replicas, Template: runtime.RawExtension{
		Raw: []byte(`{"spec":{"restartPolicy":"Never","containers":[{"name":"main","image":"busybox"}]}}`)}}
}

// jobStatus is the stored status of the Volcano Job of a name in the namespace ns.
func (c *cluster) jobStatus(name string) *batchv1alpha1.JobStatus {
	job := apiserver.Find[batchv1alpha1.Job](c.server, "ns", name)
	if job == nil {
		return &batchv1alpha1.JobStatus{}
	}
	return &job.Status
}

// awaitPhase waits until the Volcano Job of a name is in a phase.
func (c *cluster) awaitPhase(t *testing.T, name string, phase batchv1alpha1.JobPhase) {
	t.Helper()
	for begun := time.Now(); c.jobStatus(name).State.Phase != phase; c.runNodes(1) {
		if time.Since(begun) > 10*time.Minute {
			t.Fatalf("Job %s is not %s within 10 minutes, but: %+v", name, phase, c.jobStatus(name))
		}
		c.pass(time.Second)
	}
}

// podNames are the names of all Pods of the namespace ns.
func (c *cluster) podNames() []string {
	var names []string
	for _, pod := range apiserver.All[corev1.Pod](c.server, "ns") {
		names = append(names, pod.Name)
	}
	return names
}

func TestAJobRunsToItsEnd(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		var phases []batchv1alpha1.JobPhase
		c.server.SetObserver(func(w *apiserver.Written) {
			if w.Resource == "jobs" && !w.Removed() {
				phases = append(phases, apiserver.After[batchv1alpha1.Job](w).Status.State.Phase)
			}
		})
		apiserver.Add(c.server, newJob(newTask("ps", 1), newTask("worker", 2)))
		c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
		c.ends = succeed
		c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
		c.pass(time.Minute)
		want := []batchv1alpha1.JobPhase{"", batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobCompleted}
		if diff := cmp.Diff(want, slices.Compact(phases)); diff != "" {
			t.Errorf("unexpected phases (-want +got):\n%s", diff)
		}
		if s := c.jobStatus("j"); s.Succeeded != 3 || s.Running != 0 || s.RetryCount != 0 {
			t.Errorf("the status is %+v, want 3 succeeded", s)
		}
		if diff := cmp.Diff([]string{"j-ps-0", "j-worker-0", "j-worker-1"}, c.podNames()); diff != "" {
			t.Errorf("unexpected Pods (-want +got):\n%s", diff)
		}
		c.server.ClearJournal()
		c.pass(time.Hour)
		if n := c.requests(); n > 0 {
			t.Errorf("there were %d requests in an hour in which there was nothing to do", n)
		}
	})
}

// jobWrites are the writes that were carried out, but for those of events and of
// PodGroups' status.
func (c *cluster) jobWrites() []string {
	var writes []string
	for _, entry := range c.tries() {
		if entry.Code >= http.StatusOK && entry.Code < http.StatusMultipleChoices {
			writes = append(writes, describeWrite(entry))
		}
	}
	return writes
}

func TestWritesOfAJobComeInOrder(t *testing.T) {
	withJobs(t, func(t *testing.T, c *cluster) {
		c.ends = succeed
		job := newJob(newTask("a", 1))
		job.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{batchv1alpha1.PluginSvc: nil, batchv1alpha1.PluginSSH: nil}
		job.Spec.Volumes = []batchv1alpha1.VolumeSpec{{MountPath: "/out", VolumeClaim: &runtime.RawExtension{
			Raw: []byte(`{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`)}}}
		apiserver.Add(c.server, job)
		c.awaitPhase(t, "j", batchv1alpha1.JobCompleted)
		c.pass(time.Minute)
		fmt.Println(c.jobWrites())
	})
}

// ofJob says whether a change is of an object that was made for a Volcano Job.
func ofJob(w *apiserver.Written) bool { return w.Metadata().Labels[batchv1alpha1.KeyJobName] != "" }
