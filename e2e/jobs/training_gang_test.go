//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"testing"
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestTrainingJobsAreGangs(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"one that wants more than it has waits, until it wants less": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.TFJob, "{runPolicy: {schedulingPolicy: {minAvailable: 10}}, tfReplicaSpecs: {Worker: {replicas: 1, @∞{schedulerName: lockstep-scheduler}}}}")
			j.HasPairs("j-worker-0").Has("Created")
			cluster.WaitGroupTold(t, j.Namespace, j.PodGroup(1).Name, "1 of at least 10 members exist")
			j.Stays(15 * time.Second).Change("{spec: {runPolicy: {schedulingPolicy: {minAvailable: 1}}}}").Has("Created Running")
		},
		"one without room for all has no Pod on a node": func(t *testing.T) {
			room := cluster.Room(t, 3)
			spec := trainingSpec(testbed.PyTorchJob, "Master 1, Worker 3", "@∞/1", "runPolicy: {schedulingPolicy: {}}")
			j := cluster.CreateTrainingJob(t, cluster.Namespace(t), testbed.PyTorchJob, "j", spec, room)
			j.HasPairs(append(numbered("worker", 3), "j-master-0")...).Has("Created").Stays(2 * time.Second)
			for name, pod := range j.Pods() {
				if pod.Spec.NodeName != "" {
					t.Errorf("Pod %s is on %s", name, pod.Spec.NodeName)
				}
			}
			room.AddNode(1, nil)
			j.Counts("Worker", counts{Active: 3}).Has("Created Running")
		},
		"all replicas are its minimum, if it says nothing": func(t *testing.T) {
			wantGroup(t, "Worker 2, PS 1", "{}", schedulingv1alpha1.PodGroupSpec{MinMember: 3, Queue: "default"})
		},
		"what it says counts, and goes on record": func(t *testing.T) {
			j := wantGroup(t, "Worker 2, PS 1", "{minAvailable: 2, queue: q}", schedulingv1alpha1.PodGroupSpec{MinMember: 2, Queue: "q"})
			if err := j.TryChange("{spec: {runPolicy: {schedulingPolicy: {queue: another}}}}"); err == nil {
				t.Error("its queue was changed")
			}
		},
		"the fewest that an elastic job may have are its minimum": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.PyTorchJob, trainingSpec(testbed.PyTorchJob, "Master 1, Worker 3", "@∞",
				"elasticPolicy: {minReplicas: 2, maxReplicas: 4}", "runPolicy: {schedulingPolicy: {}}"))
			if least := j.PodGroup(1).Spec.MinMember; least != 3 {
				t.Errorf("its minimum is %d, want the master and two workers", least)
			}
		},
		"a template that names the scheduler makes one": func(t *testing.T) {
			j := cluster.GivenTrainingJob(t, testbed.TFJob, "{tfReplicaSpecs: {Worker: {replicas: 2, @∞{schedulerName: lockstep-scheduler}}}}")
			if least := j.PodGroup(1).Spec.MinMember; least != 2 {
				t.Errorf("its minimum is %d, want both", least)
			}
			j.Has("Created Running").Counts("Worker", counts{Active: 2})
		},
	})
}

// wantGroup makes a TFJob with a schedulingPolicy, and wants its gang to be so.
func wantGroup(t *testing.T, replicas, policy string, want schedulingv1alpha1.PodGroupSpec) *testbed.TrainingJob {
	t.Helper()
	j := cluster.GivenTrainingJob(t, testbed.TFJob, trainingSpec(testbed.TFJob, replicas, "@∞", "runPolicy: {schedulingPolicy: "+policy+"}"))
	if got := j.PodGroup(1).Spec; got.MinMember != want.MinMember || got.Queue != want.Queue {
		t.Errorf("the gang is %+v, want %d members of the queue %s", got, want.MinMember, want.Queue)
	}
	return j
}
