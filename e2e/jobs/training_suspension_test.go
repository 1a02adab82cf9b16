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

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestASuspendedJob(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"has nothing, if it was made so, and is not deleted": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Chief 1, Worker 1", "runPolicy: {suspend: true, ttlSecondsAfterFinished: 1, schedulingPolicy: {}}")
			j.Has("Created Suspended").Stays(4 * time.Second).HasPairs()
			if groups := j.PodGroups(); len(groups) > 0 || j.Status().StartTime != nil {
				t.Errorf("it has the gangs %v, and the startTime %v", groups, j.Status().StartTime)
			}
		},
		"loses all that it had, and runs again with the templates of then": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Chief 1, Worker 1").HasPairs("j-chief-0", "j-worker-0").Run().Has("Created Running").Counts("Chief", counts{Active: 1})
			begun := j.Status().StartTime
			j.Change("{spec: {runPolicy: {suspend: true}}}").Has("Created !Running Suspended").HasPairs()
			j.Counts("Chief", counts{}).Counts("Worker", counts{})
			s := j.Status()
			if c := testbed.ConditionOf(&s, kubeflowv1.JobConditionRunning); c.Reason != "TFJobSuspended" || !s.StartTime.Equal(begun) {
				t.Errorf("Running is False because of %s; the startTime is %v, was %v", c.Reason, s.StartTime, begun)
			}
			testbed.Eventually(t, "another second", func(context.Context) (bool, string, error) { return time.Since(begun.Time) > time.Second, "", nil })

			for _, replicas := range []string{"Chief", "Worker"} {
				j.Change(fmt.Sprintf("{spec: {tfReplicaSpecs: {%s: {template: {spec: {nodeSelector: {a: b}}}}}}}", replicas))
			}
			j.Change("{spec: {runPolicy: {suspend: false}}}").HasPairs("j-chief-0", "j-worker-0").Run().Has("Created !Suspended Running")
			for name, pod := range j.Pods() {
				if pod.Spec.NodeSelector["a"] != "b" {
					t.Errorf("Pod %s has the nodeSelector %v", name, pod.Spec.NodeSelector)
				}
			}
			s = j.Status()
			if c := testbed.ConditionOf(&s, kubeflowv1.JobConditionSuspended); c.Reason != "TFJobResumed" || !begun.Before(s.StartTime) {
				t.Errorf("Suspended is False because of %s; the startTime is %v, was %v", c.Reason, s.StartTime, begun)
			}
		},
		"forgets what has succeeded": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 2", "runPolicy: {cleanPodPolicy: All}").HasPairs(numbered("worker", 2)...)
			j.End(0, "j-worker-1").Counts("Worker", counts{Succeeded: 1})
			before := j.UIDs()
			j.Change("{spec: {runPolicy: {suspend: true}}}").HasPairs().Counts("Worker", counts{})
			j.Change("{spec: {runPolicy: {suspend: false}}}").HasPairs(numbered("worker", 2)...).Counts("Worker", counts{})
			testbed.Eventually(t, "other Pods", replaced(j, before, numbered("worker", 2)...))
		},
		"stays finished, if it was": func(t *testing.T) {
			j := givenTraining(t, testbed.TFJob, "Worker 1").HasPairs("j-worker-0").End(0, "j-worker-0").Has("Created Succeeded")
			j.Change("{spec: {runPolicy: {suspend: true}}}").Stays(2 * time.Second).HasPairs("j-worker-0")
		},
	})
}

// trainingQueue is a stand-in for Kueue. It reads and writes of a job only what Kueue does.
type trainingQueue struct {
	t   *testing.T
	job *testbed.TrainingJob
	// templates are the fields of a patch that lead to each template.
	templates []string
}

// admit lets the job begin on nodes of a flavour.
func (q trainingQueue) admit(flavour string) {
	q.t.Helper()
	q.write(false, fmt.Sprintf("{metadata: {labels: {kueue.x-k8s.io/podset: main}}, spec: {nodeSelector: {flavour: %s}, tolerations: [{key: flavour, operator: Exists}]}}", flavour))
}

// evict stops the job and takes back what admit has written. The quota is free when no Pod is
// counted any more.
func (q trainingQueue) evict() {
	q.t.Helper()
	q.write(true, "{metadata: {labels: {kueue.x-k8s.io/podset: null}}, spec: {nodeSelector: {flavour: null}, tolerations: null}}")
	q.job.Is("use no quota", func(s *kubeflowv1.JobStatus) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Values(s.ReplicaStatuses)), func(r kubeflowv1.ReplicaStatus) bool { return r.Active != 0 })
	})
	for name, pod := range q.job.Pods() {
		if pod.DeletionTimestamp == nil {
			q.t.Errorf("the quota is free, and Pod %s is still there", name)
		}
	}
}

func (q trainingQueue) write(suspend bool, template string) {
	q.t.Helper()
	var all []string
	for _, field := range q.templates {
		all = append(all, fmt.Sprintf("%s: {template: %s}", field, template))
	}
	q.job.Change(fmt.Sprintf("{spec: {runPolicy: {suspend: %t}, pytorchReplicaSpecs: {%s}}}", suspend, strings.Join(all, ", ")))
}

// podsReady is how Kueue sees that all has begun.
func (q trainingQueue) podsReady() {
	q.t.Helper()
	q.job.Is("have its Pods ready", func(s *kubeflowv1.JobStatus) bool {
		c := testbed.ConditionOf(s, kubeflowv1.JobConditionRunning)
		return c != nil && c.Status == "True"
	})
}

// TestAJobInAQueueOfKueue waits, is admitted, evicted for another, admitted to other nodes, and
// ends: by nothing but the fields that Kueue knows.
func TestAJobInAQueueOfKueue(t *testing.T) {
	t.Parallel()
	names := []string{"j-master-0", "j-worker-0", "j-worker-1"}
	j := givenTraining(t, testbed.PyTorchJob, "Master 1, Worker 2", "runPolicy: {suspend: true, cleanPodPolicy: All}").Has("Created Suspended").HasPairs()
	kueue := trainingQueue{t, j, []string{"Master", "Worker"}}
	for _, flavour := range []string{"spot", "reserved"} {
		kueue.admit(flavour)
		j.HasPairs(names...).Run()
		kueue.podsReady()
		for name, pod := range j.Pods() {
			if pod.Spec.NodeSelector["flavour"] != flavour || len(pod.Spec.Tolerations) == 0 || pod.Labels["kueue.x-k8s.io/podset"] != "main" {
				t.Errorf("admitted to %s, Pod %s has the nodeSelector %v and the labels %v", flavour, name, pod.Spec.NodeSelector, pod.Labels)
			}
		}
		if flavour == "spot" {
			kueue.evict()
			j.HasPairs().Has("Created !Running Suspended")
		}
	}
	j.End(0, "j-master-0").Has("Created !Suspended !Running Succeeded").HasPairs()
	s := j.Status()
	if c := testbed.ConditionOf(&s, trainingSucceeded); c.Message == "" {
		t.Error("Kueue would tell no reason why it finished")
	}
}

// TestAJobOfAnotherClusterIsLeftAlone: MultiKueue has another cluster run it, and writes its
// status by itself.
func TestAJobOfAnotherClusterIsLeftAlone(t *testing.T) {
	t.Parallel()
	j := givenTraining(t, testbed.TFJob, "Worker 1", "runPolicy: {managedBy: kueue.x-k8s.io/multikueue, suspend: true}")
	j.Change("{spec: {runPolicy: {suspend: false}}}")
	// One that is made later and served shows that the first was looked at.
	cluster.CreateTrainingJob(t, j.Namespace, testbed.TFJob, "later", trainingSpec(testbed.TFJob, "Worker 1", "@?"), nil).HasPairs("later-worker-0")
	j.Stays(2 * time.Second).HasPairs()
	if len(j.Statuses()) > 0 || len(j.Events()) > 0 {
		t.Errorf("it has the statuses %+v and the events %+v", j.Statuses(), j.Events())
	}
}
