//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// volcanoLife is a Volcano Job, what its user does, and the end that both imply.
type volcanoLife struct {
	spec string
	use  func(j *testbed.VolcanoJob, pause func())
	want batchv1alpha1.JobPhase
	// tally is what it counts in the end. Where that depends on who is first, only the
	// retries count.
	tally       testbed.VolcanoTally
	onlyRetries bool
}

var volcanoJobs = map[string]volcanoLife{
	"natural": {
		spec: "{plugins: {svc: [], ssh: [], env: []}, tasks: [{name: a, replicas: 3, @2→0}]}",
		want: batchv1alpha1.JobCompleted, tally: testbed.VolcanoTally{Succeeded: 3},
	},
	"failing": {
		spec: "{minSuccess: 2, maxRetry: 3, policies: [{events: [PodFailed, PodEvicted], action: RestartJob}], tasks: [{name: a, replicas: 1, @∞}, {name: b, replicas: 1, @1→1}]}",
		want: batchv1alpha1.JobFailed, tally: testbed.VolcanoTally{Failed: 1, Retries: 3},
	},
	"task-done": {
		spec: "{policies: [{event: TaskCompleted, action: CompleteJob}], tasks: [{name: a, replicas: 1, @2→0}, {name: b, replicas: 2, @∞}]}",
		want: batchv1alpha1.JobCompleted, tally: testbed.VolcanoTally{Succeeded: 1},
	},
	"task-restarted": {
		spec: "{maxRetry: 3, tasks: [{name: a, replicas: 1, @∞}, {name: b, replicas: 2, policies: [{exitCode: 5, action: RestartTask}], @1→5}]}",
		want: batchv1alpha1.JobFailed, tally: testbed.VolcanoTally{Retries: 3}, onlyRetries: true,
	},
	"delayed": {
		spec: "{policies: [{exitCode: 5, action: TerminateJob, timeout: 6s}], tasks: [{name: a, replicas: 1, @1→5}, {name: b, replicas: 1, @∞}]}",
		want: batchv1alpha1.JobTerminated, tally: testbed.VolcanoTally{Failed: 1},
	},
	"dependent": {
		spec: "{tasks: [{name: a, replicas: 1, dependsOn: {name: [b]}, @1→0}, {name: b, replicas: 2, @4→0}]}",
		want: batchv1alpha1.JobCompleted, tally: testbed.VolcanoTally{Succeeded: 3},
	},
	"commanded": {
		spec: "{maxRetry: 9, plugins: {svc: []}, tasks: [{name: a, replicas: 2, @∞}]}",
		use: func(j *testbed.VolcanoJob, pause func()) {
			for _, action := range []busv1alpha1.Action{busv1alpha1.ActionAbortJob, busv1alpha1.ActionResumeJob} {
				j.Passes(batchv1alpha1.JobPending)
				pause()
				j.Do(action)
			}
			for range 3 {
				j.Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobRunning)
				pause()
				j.Do(busv1alpha1.ActionRestartJob)
			}
			j.Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobRunning).Do(busv1alpha1.ActionCompleteJob)
		},
		want: batchv1alpha1.JobCompleted, tally: testbed.VolcanoTally{Retries: 3},
	},
	"evicted": {
		spec: "{maxRetry: 9, policies: [{event: PodEvicted, action: RestartJob}], tasks: [{name: a, replicas: 2, @∞}]}",
		use: func(j *testbed.VolcanoJob, pause func()) {
			for range 3 {
				j.Passes(batchv1alpha1.JobRunning)
				j.Counts(testbed.VolcanoTally{Running: 2, Retries: j.Status().RetryCount})
				j.Kill("j-a-1")
				j.Passes(batchv1alpha1.JobRestarting)
				pause()
			}
			j.Passes(batchv1alpha1.JobRunning).Do(busv1alpha1.ActionTerminateJob)
		},
		want: batchv1alpha1.JobTerminated, tally: testbed.VolcanoTally{Retries: 3},
	},
	"scaled": {
		spec: "{plugins: {svc: []}, tasks: [{name: a, replicas: 2, @∞}]}",
		use: func(j *testbed.VolcanoJob, pause func()) {
			for _, replicas := range []int32{5, 1, 0, 4, 3} {
				pause()
				j.Edit(func(s *batchv1alpha1.JobSpec) { s.Tasks[0].Replicas = replicas })
			}
			j.Counts(testbed.VolcanoTally{Running: 3}).Do(busv1alpha1.ActionTerminateJob)
		},
		want: batchv1alpha1.JobTerminated,
	},
}

// volcanoLives are lives of Volcano Jobs.
func volcanoLives() map[string]life {
	lives := map[string]life{}
	for name, job := range volcanoJobs {
		lives[name] = func(t *testing.T, namespace string, pause func(time.Duration)) {
			recording := cluster.RecordVolcanoJobs(t, namespace)
			j := cluster.CreateVolcanoJob(t, namespace, "j", job.spec, nil)
			if job.use != nil {
				job.use(j, func() { pause(2 * time.Second) })
			}
			j.Passes(job.want)
			j.Is(fmt.Sprintf("count %+v", job.tally), func(s *batchv1alpha1.JobStatus) bool {
				got := testbed.VolcanoTallyOf(s)
				return got == job.tally || job.onlyRetries && got.Retries == job.tally.Retries
			})
			recording.CheckQuiet(t)
			wantNothingLeftOver(t, j)
		}
	}
	return lives
}

// wantNothingLeftOver waits until no Pod runs, and no object of plugins is left, of a Job that
// is over.
func wantNothingLeftOver(t *testing.T, j *testbed.VolcanoJob) {
	t.Helper()
	testbed.Eventually(t, "nothing of the Job to be left but Pods that have ended", func(ctx context.Context) (bool, string, error) {
		for name, pod := range j.Pods() {
			if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
				return false, "Pod " + name, nil
			}
		}
		services, err := cluster.Kube.CoreV1().Services(j.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, "", err
		}
		return len(services.Items) == 0, fmt.Sprintf("%d Services", len(services.Items)), nil
	})
}
