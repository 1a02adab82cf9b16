//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// startForAllKinds starts a controller of jobs of every kind, and waits until it is ready.
func startForAllKinds(t *testing.T) *testbed.Controller {
	t.Helper()
	controller := cluster.StartController(t, allKinds)
	controller.WaitReady(t)
	return controller
}

// recordedVolcano creates a Volcano Job j in a namespace of its own, of which everything is recorded.
func recordedVolcano(t *testing.T, spec string) (*testbed.VolcanoJob, *testbed.Recording) {
	t.Helper()
	namespace := cluster.Namespace(t)
	recording := cluster.RecordVolcanoJobs(t, namespace)
	return cluster.CreateVolcanoJob(t, namespace, "j", spec, nil), recording
}

// recordedTraining creates a training job j in a namespace of its own, of which everything is recorded.
func recordedTraining(t *testing.T, kind testbed.TrainingKind, spec string) (*testbed.TrainingJob, *testbed.Recording) {
	t.Helper()
	namespace := cluster.Namespace(t)
	recording := cluster.RecordTrainingJobs(t, namespace, kind)
	return cluster.CreateTrainingJob(t, namespace, kind, "j", spec, nil), recording
}

// TestACommandIsExecutedOnceWheneverTheControllerDies kills the controller at a moment after a
// Command was issued, sooner and later each time.
func TestACommandIsExecutedOnceWheneverTheControllerDies(t *testing.T) {
	controller := startForAllKinds(t)
	j, recording := recordedVolcano(t, "{maxRetry: 100, tasks: [{name: a, replicas: 1, @∞}]}")
	j.Passes(batchv1alpha1.JobRunning)
	for i := range 8 {
		command := j.Issue(j.Command(busv1alpha1.ActionRestartJob))
		testbed.PauseFor(t, time.Duration(i)*15*time.Millisecond)
		controller.Kill()
		controller = startForAllKinds(t)
		testbed.Eventually(t, "the Command to be gone", func(context.Context) (bool, string, error) {
			return !slices.Contains(j.Commands(), command), "", nil
		})
		j.Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 1, Retries: int32(i) + 1})
	}
	recording.CheckQuiet(t)
}

// TestTimesOutliveTheController kills the controller after it has begun to wait for the end of a
// delay, of a deadline and of a time to live. The next controller acts when the time is over.
func TestTimesOutliveTheController(t *testing.T) {
	controller := startForAllKinds(t)
	delayed, ofDelayed := recordedVolcano(t, "{policies: [{exitCode: 5, action: TerminateJob, timeout: 10s}], tasks: [{name: a, replicas: 1, @1→5}, {name: b, replicas: 1, @∞}]}")
	late, ofLate := recordedTraining(t, testbed.TFJob, "{runPolicy: {activeDeadlineSeconds: 10}, tfReplicaSpecs: {Worker: {@?}}}")
	done, ofDone := recordedTraining(t, testbed.TFJob, "{runPolicy: {ttlSecondsAfterFinished: 10}, tfReplicaSpecs: {Worker: {@?}}}")
	late.HasPods("j-worker-0")
	done.End(0, "j-worker-0").Has("Created Succeeded")
	delayed.Passes(batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 1, Failed: 1})
	failed := delayed.Pod("j-a-0").Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time
	testbed.PauseFor(t, time.Until(failed.Add(5*time.Second)))
	controller.Kill()
	startForAllKinds(t)

	delayed.Passes(batchv1alpha1.JobTerminating, batchv1alpha1.JobTerminated)
	for _, condition := range delayed.Status().Conditions {
		if condition.Status != batchv1alpha1.JobTerminating {
			continue
		}
		if took := condition.LastTransitionTime.Sub(failed); took < 9*time.Second || took > time.Minute {
			t.Errorf("the Volcano Job was terminated %v after the failure, want about 10s", took)
		}
	}
	s := late.Has("Created Failed").Status()
	if active := s.CompletionTime.Sub(s.StartTime.Time); active < 10*time.Second || active > time.Minute {
		t.Errorf("the TFJob was active for %v, want about 10s", active)
	}
	done.IsGone()
	if kept := time.Since(done.Status().CompletionTime.Time); kept < 10*time.Second {
		t.Errorf("the TFJob was kept for %v, want 10s", kept)
	}
	for _, recording := range []*testbed.Recording{ofDelayed, ofLate, ofDone} {
		recording.CheckQuiet(t)
	}
}

// TestWhatHappensWhileNoControllerRunsIsNotLost has Pods of Volcano Jobs and of training jobs fail,
// succeed and be deleted between the end of one controller and the start of the next.
func TestWhatHappensWhileNoControllerRunsIsNotLost(t *testing.T) {
	controller := startForAllKinds(t)
	var recordings []*testbed.Recording
	volcano := func(spec string) *testbed.VolcanoJob {
		j, recording := recordedVolcano(t, spec)
		recordings = append(recordings, recording)
		return j
	}
	training := func(restartPolicy string) *testbed.TrainingJob {
		j, recording := recordedTraining(t, testbed.TFJob, "{successPolicy: AllWorkers, tfReplicaSpecs: {Worker: {replicas: 2, restartPolicy: "+restartPolicy+", @?}}}")
		recordings = append(recordings, recording)
		return j.HasPods("j-worker-0", "j-worker-1").Run().Counts("Worker", testbed.PodCounts{Active: 2})
	}
	failing, restarted, deleted := training("Never"), training("ExitCode"), training("Never")
	evicted := volcano("{policies: [{event: PodEvicted, action: RestartJob}], tasks: [{name: a, replicas: 2, @∞}]}")
	completed := volcano("{policies: [{event: PodFailed, action: CompleteJob}], tasks: [{name: a, replicas: 1, @5→1}, {name: b, replicas: 1, @∞}]}")
	evicted.Passes(batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 2})
	completed.Passes(batchv1alpha1.JobRunning)
	controller.Kill()

	failing.End(1, "j-worker-1")
	before := restarted.Pod("j-worker-1").UID
	restarted.End(143, "j-worker-1").End(0, "j-worker-0")
	deleted.Kill("j-worker-1").HasPods("j-worker-0")
	evicted.Kill("j-a-1").HasPods("j-a-0")
	testbed.Eventually(t, "the Pod of the Volcano Job to fail", func(context.Context) (bool, string, error) {
		phase := completed.Pod("j-a-0").Status.Phase
		return phase == corev1.PodFailed, string(phase), nil
	})
	startForAllKinds(t)

	failing.Has("Created !Running Failed").Counts("Worker", testbed.PodCounts{Active: 1, Failed: 1})
	waitOther(restarted, "j-worker-1", before)
	restarted.End(0, "j-worker-1").InPhase(kubeflowv1.JobSucceeded).Counts("Worker", testbed.PodCounts{Succeeded: 2})
	if n := restarted.Status().ReplicaStatuses["Worker"].Restarts; n != 1 {
		t.Errorf("%d restarts are counted, want 1", n)
	}
	deleted.HasPods("j-worker-0", "j-worker-1").Run("j-worker-1").Counts("Worker", testbed.PodCounts{Active: 2}).Never(kubeflowv1.JobConditionFailed)
	completed.Passes(batchv1alpha1.JobCompleting, batchv1alpha1.JobCompleted)
	evicted.Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 2, Retries: 1})
	for _, recording := range recordings {
		recording.CheckQuiet(t)
	}
}
