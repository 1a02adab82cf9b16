//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

func TestPoliciesOfJobsAndTasks(t *testing.T) {
	tell(t, map[string]func(t *testing.T){
		"RestartTask makes the Pods of the task anew, and no others": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, @∞}, {name: b, replicas: 2, policies: [{event: PodEvicted, action: RestartTask}], @∞}]}").Passes(running)
			before := j.UIDs()
			j.Kill("j-b-0").Passes(restarting, pending, running).Counts(tally{Running: 4, Retries: 1})
			wantAnew(t, before, j.UIDs(), "j-b-0", "j-b-1")
		},
		"RestartPod makes one Pod anew": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, policies: [{event: PodFailed, action: RestartPod}], @∞}, {name: b, replicas: 1, @∞}]}").Passes(running)
			j.Counts(tally{Running: 3})
			before := j.UIDs()
			fail(t, j, "j-a-1", 1)
			j.Passes(restarting, pending, running).Counts(tally{Running: 3, Retries: 1})
			wantAnew(t, before, j.UIDs(), "j-a-1")
		},
		"RestartPartition makes the Pods of the partition anew": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 4, partitionPolicy: {totalPartitions: 2, partitionSize: 2}, policies: [{event: PodEvicted, action: RestartPartition}], @∞}]}").Passes(running)
			for name, want := range map[string]string{"j-a-0": "0", "j-a-1": "0", "j-a-2": "1", "j-a-3": "1"} {
				if got := j.Pod(name).Labels[batchv1alpha1.KeyPartitionID]; got != want {
					t.Errorf("Pod %s is in partition %q, want %s", name, got, want)
				}
			}
			before := j.UIDs()
			j.Kill("j-a-3").Passes(restarting, pending, running).Counts(tally{Running: 4, Retries: 1})
			wantAnew(t, before, j.UIDs(), "j-a-2", "j-a-3")
		},
		"a Pod that waits for too long ends the Job": func(t *testing.T) {
			j := inRoom(t, cluster.Room(t, 1), "{tasks: [{name: a, replicas: 1, policies: [{event: PodPending, action: TerminateJob, timeout: 5s}], @∞/100}]}")
			j.Passes(pending, terminating, terminated).Never(running)
			made := conditionTime(j.Status(), pending)
			if waited := conditionTime(j.Status(), terminating).Sub(made); waited < 4*time.Second || waited > time.Minute {
				t.Errorf("it was terminated after %v, want about 5s", waited)
			}
		},
		"a policy for Pods that wait does nothing without a timeout": func(t *testing.T) {
			j := inRoom(t, cluster.Room(t, 1), "{tasks: [{name: a, replicas: 1, policies: [{event: PodPending, action: TerminateJob}], @∞/100}]}")
			j.Passes(pending).HasPods("j-a-0").Stays(3 * time.Second)
		},
		"a Pod that runs in time does not end the Job": func(t *testing.T) {
			room := cluster.Room(t, 1)
			j := inRoom(t, room, "{tasks: [{name: a, replicas: 1, policies: [{event: PodPending, action: TerminateJob, timeout: 40s}], @∞/2}]}")
			j.Passes(pending).HasPods("j-a-0")
			room.AddNode(2, nil)
			j.Passes(running)
			made := conditionTime(j.Status(), pending)
			j.Stays(time.Until(made.Add(42 * time.Second))).Never(terminating)
		},
		"the first policy that fits decides: not the one for the code, with another": func(t *testing.T) {
			given(t, "{policies: [{exitCode: 3, action: AbortJob}, {event: PodFailed, action: CompleteJob}], tasks: [{name: a, replicas: 1, @2→7}, {name: b, replicas: 1, @∞}]}").
				Passes(running, completing, completed).Never(aborting)
		},
		"the first policy that fits decides: the one for the code": func(t *testing.T) {
			given(t, "{policies: [{exitCode: 3, action: AbortJob}, {event: PodFailed, action: CompleteJob}], tasks: [{name: a, replicas: 1, @2→3}, {name: b, replicas: 1, @∞}]}").
				Passes(running, aborting, aborted).Never(completing)
		},
		"policies of the Job count where none of the task fits": func(t *testing.T) {
			given(t, "{policies: [{exitCode: 5, action: AbortJob}], tasks: [{name: a, replicas: 1, policies: [{event: TaskCompleted, action: CompleteJob}], @2→5}, {name: b, replicas: 1, @∞}]}").
				Passes(running, aborting, aborted)
		},
		"every event is one of *, also that a task is done": func(t *testing.T) {
			j := given(t, "{policies: [{event: '*', action: CompleteJob}], tasks: [{name: a, replicas: 1, @4→0}, {name: b, replicas: 1, @∞}]}")
			j.Passes(running, completing, completed).Counts(tally{Succeeded: 1})
			j.Tells(corev1.EventTypeNormal, "ExecuteAction", "CompleteJob")
		},
		"a Job that keeps failing is restarted until it has no retries left": func(t *testing.T) {
			j := given(t, "{minSuccess: 2, maxRetry: 2, policies: [{events: [PodFailed, PodEvicted], action: RestartJob}], tasks: [{name: a, replicas: 1, @∞}, {name: b, replicas: 1, @2→1}]}")
			j.Passes(running, restarting, running, restarting, failed).HasPods("j-b-0").Counts(tally{Failed: 1, Retries: 2})
		},
		"a delayed action is told of, and taken when it is due": func(t *testing.T) {
			j := given(t, "{policies: [{exitCode: 5, action: TerminateJob, timeout: 15s}], tasks: [{name: a, replicas: 1, @1→5}, {name: b, replicas: 1, @∞}]}").Passes(running)
			j.Tells(corev1.EventTypeNormal, "ExecuteAction", "TerminateJob in 15s")
			j.Passes(terminating, terminated)
		},
		"an event without a target restarts nothing": func(t *testing.T) {
			j := given(t, "{tasks: [{name: a, replicas: 2, policies: [{event: PodEvicted, action: RestartPartition}], @∞}]}").Passes(running)
			before := j.UIDs()
			j.Kill("j-a-0").Tells(corev1.EventTypeWarning, "NoTarget", "RestartPartition").Never(restarting)
			j.Counts(tally{Running: 2})
			wantAnew(t, before, j.UIDs(), "j-a-0")
		},
	})
}

// wantAnew wants these Pods, and no others, to be new ones.
func wantAnew(t *testing.T, before, after map[string]types.UID, names ...string) {
	t.Helper()
	anew := map[string]bool{}
	for _, name := range names {
		anew[name] = true
	}
	for name, uid := range before {
		if now, there := after[name]; !there || (now != uid) != anew[name] {
			t.Errorf("Pod %s was %s and is %q; a new one is wanted: %t", name, uid, now, anew[name])
		}
	}
}

// fail has the container of a Pod end with an exit code now.
func fail(t *testing.T, j *testbed.VolcanoJob, name string, code int32) {
	t.Helper()
	pod := j.Pod(name).DeepCopy()
	now := metav1.Now()
	pod.Status.Phase = corev1.PodFailed
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}}
	}
	if _, err := cluster.Kube.CoreV1().Pods(j.Namespace).UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// conditionTime is when a Job was last in a phase.
func conditionTime(s batchv1alpha1.JobStatus, phase batchv1alpha1.JobPhase) time.Time {
	for _, condition := range s.Conditions {
		if condition.Status == phase {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}
