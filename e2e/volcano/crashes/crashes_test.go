//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package crashes

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// withJobs is a controller that runs Volcano Jobs, too.
var withJobs = localenv.WithVolcanoJobs("")

// jobLife is a Volcano Job, what its user does, and the end that both imply.
type jobLife struct {
	spec string
	use  func(j *testbed.VolcanoJob, pause func())
	want batchv1alpha1.JobPhase
	// tally is what it counts in the end. Where that depends on who is first, only the
	// retries count.
	tally       testbed.VolcanoTally
	onlyRetries bool
}

var jobLives = map[string]jobLife{
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
		want: batchv1alpha1.JobCompleted, tally: testbed.VolcanoTally{Retries: 4},
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

// TestControllerCrashesUnderVolcanoJobs kills the controller at random moments while Jobs are
// created, restarted, commanded, rescaled and completed. Each must come to the end that its spec
// and its user imply, as if nothing had happened, with the guarantees kept all the way.
func TestControllerCrashesUnderVolcanoJobs(t *testing.T) {
	lives := map[string]testbed.Life{}
	for name, life := range jobLives {
		lives[name] = func(t *testing.T, namespace string, pause func(time.Duration)) {
			recording := cluster.RecordVolcanoJobs(t, namespace)
			j := cluster.CreateVolcanoJob(t, namespace, "j", life.spec, nil)
			if life.use != nil {
				life.use(j, func() { pause(2 * time.Second) })
			}
			j.Passes(life.want)
			j.Is(fmt.Sprintf("count %+v", life.tally), func(s *batchv1alpha1.JobStatus) bool {
				got := testbed.VolcanoTallyOf(s)
				return got == life.tally || life.onlyRetries && got.Retries == life.tally.Retries
			})
			recording.CheckQuiet(t)
			wantNothingLeftOver(t, j)
		}
	}
	cluster.UnderCrashes(t, withJobs, 20, lives)
}

// recorded makes a Job j of a spec, in a namespace of its own of which all is recorded.
func recorded(t *testing.T, spec string) (*testbed.VolcanoJob, *testbed.Recording) {
	t.Helper()
	namespace := cluster.Namespace(t)
	recording := cluster.RecordVolcanoJobs(t, namespace)
	return cluster.CreateVolcanoJob(t, namespace, "j", spec, nil), recording
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

// TestACommandIsExecutedOnceWheneverTheControllerDies kills the controller at a moment after a
// Command was issued, sooner and later each time.
func TestACommandIsExecutedOnceWheneverTheControllerDies(t *testing.T) {
	controller := cluster.StartControllerOfJobs(t)
	j, recording := recorded(t, "{maxRetry: 100, tasks: [{name: a, replicas: 1, @∞}]}")
	j.Passes(batchv1alpha1.JobRunning)
	for i := range 8 {
		command := j.Issue(j.Command(busv1alpha1.ActionRestartJob))
		testbed.PauseFor(t, time.Duration(i)*15*time.Millisecond)
		controller.Kill()
		controller = cluster.StartControllerOfJobs(t)
		testbed.Eventually(t, "the Command to be gone", func(context.Context) (bool, string, error) {
			return !slices.Contains(j.Commands(), command), "", nil
		})
		j.Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 1, Retries: int32(i) + 1})
	}
	recording.CheckQuiet(t)
}

// TestADelayedActionOutlivesTheController that has armed it.
func TestADelayedActionOutlivesTheController(t *testing.T) {
	controller := cluster.StartControllerOfJobs(t)
	j, recording := recorded(t, "{policies: [{exitCode: 5, action: TerminateJob, timeout: 10s}], tasks: [{name: a, replicas: 1, @1→5}, {name: b, replicas: 1, @∞}]}")
	j.Passes(batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 1, Failed: 1})
	failed := j.Pod("j-a-0").Status.ContainerStatuses[0].State.Terminated.FinishedAt.Time
	testbed.PauseFor(t, time.Until(failed.Add(5*time.Second)))
	controller.Kill()
	cluster.StartControllerOfJobs(t)
	j.Passes(batchv1alpha1.JobTerminating, batchv1alpha1.JobTerminated)
	for _, condition := range j.Status().Conditions {
		if condition.Status != batchv1alpha1.JobTerminating {
			continue
		}
		if took := condition.LastTransitionTime.Sub(failed); took < 9*time.Second || took > time.Minute {
			t.Errorf("it was terminated %v after the failure, want about 10s", took)
		}
	}
	recording.CheckQuiet(t)
}

// TestWhatHappensWhileNoControllerRunsIsNotLost: a failure, and a Pod that somebody deletes.
func TestWhatHappensWhileNoControllerRunsIsNotLost(t *testing.T) {
	controller := cluster.StartControllerOfJobs(t)
	failing, ofFailing := recorded(t, "{policies: [{event: PodFailed, action: CompleteJob}], tasks: [{name: a, replicas: 1, @5→1}, {name: b, replicas: 1, @∞}]}")
	evicted, ofEvicted := recorded(t, "{policies: [{event: PodEvicted, action: RestartJob}], tasks: [{name: a, replicas: 2, @∞}]}")
	failing.Passes(batchv1alpha1.JobRunning)
	evicted.Passes(batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 2})
	controller.Kill()
	evicted.Kill("j-a-1").HasPods("j-a-0")
	testbed.Eventually(t, "the Pod to fail", func(context.Context) (bool, string, error) {
		phase := failing.Pod("j-a-0").Status.Phase
		return phase == corev1.PodFailed, string(phase), nil
	})
	cluster.StartControllerOfJobs(t)
	failing.Passes(batchv1alpha1.JobCompleting, batchv1alpha1.JobCompleted)
	evicted.Passes(batchv1alpha1.JobRestarting, batchv1alpha1.JobRunning).Counts(testbed.VolcanoTally{Running: 2, Retries: 1})
	ofFailing.CheckQuiet(t)
	ofEvicted.CheckQuiet(t)
}
