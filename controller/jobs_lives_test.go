// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestShellLivesOfJobs leads Volcano Jobs through random lives, in the cluster of
// TestShellLives and with its flags.
func TestShellLivesOfJobs(t *testing.T) {
	leadLives(t, *shellLives/2, 100, func(t *testing.T, seed uint64) (*trace, func()) {
		l := newJobLife(t, seed)
		return l.trace, l.live
	})
}

// jobLife is a few Volcano Jobs in one random cluster. Of a shellLife it has what disturbs
// the controller and not the Frameworks.
type jobLife struct {
	*shellLife
	jobs []*batchv1alpha1.Job
	book *jobBook
	// commands counts those that were issued.
	commands int
}

// jobDisturbances are the disturbances of the lives of Jobs: here disturbStop is a user who
// issues Commands.
var jobDisturbances = []disturbance{
	disturbRequests, disturbAnswers, disturbLate, disturbRefusals, disturbWatches, disturbCrashes, disturbRestarts, disturbPods,
	disturbForce, disturbLabels, disturbNames, disturbSpec, disturbStop, disturbNodes, disturbFailures, disturbClock,
}

// watchedForJobs are the resources that the controller watches for Jobs.
var watchedForJobs = []string{"pods", "jobs", "podgroups", "commands", "configmaps", "services"}

func newJobLife(t *testing.T, seed uint64) *jobLife {
	random := rand.New(rand.NewPCG(seed, 1))
	l := &jobLife{shellLife: &shellLife{cluster: newCluster(t, random), seed: seed, odds: map[fault]int{}}}
	runJobs(l.cluster)
	l.faults = newFaults(seed, l.trace)
	l.server.SetHook(l.faults.befall)
	l.book = newJobBook(l.cluster)
	l.book.late.sentAt = l.faults.sentAt
	l.server.SetObserver(l.book.observe)
	l.kinds = chooseOfJobs(random, jobDisturbances)
	return l
}

// live is a while of disturbances, and then peace in which each Job comes to its end.
func (l *jobLife) live() {
	l.trace.log("disturbed by %v", l.kinds)
	for i := range 1 + l.random.IntN(3) {
		l.jobs = append(l.jobs, apiserver.Add(l.server, l.newJob(string(rune('a'+i)))))
	}
	l.startProgram()
	l.slowToEnd = l.random.IntN(3) == 0
	l.ends = func(*corev1.Pod) (int32, bool) {
		code := int32(0)
		if l.failing {
			code = []int32{0, 1, 3}[l.random.IntN(3)]
		}
		return code, l.random.IntN(6) == 0
	}
	for range 20 + l.random.IntN(20) {
		if len(l.kinds) > 0 && l.random.IntN(3) > 0 {
			l.disturb(l.kinds[l.random.IntN(len(l.kinds))], l.jobs[l.random.IntN(len(l.jobs))])
		}
		l.runNodes(1 + l.random.IntN(3))
		if l.program == nil && l.random.IntN(3) == 0 {
			l.startProgram()
		}
		l.pass(l.pause())
	}
	l.makePeace()
	l.awaitEnd()
	l.stopProgram()
	if !l.awaitPrograms(time.Minute) {
		l.t.Errorf("the controller has not ended")
	}
}

func (l *jobLife) newJob(name string) *batchv1alpha1.Job {
	policies := func() []batchv1alpha1.LifecyclePolicy {
		actions := []busv1alpha1.Action{
			busv1alpha1.ActionRestartJob, busv1alpha1.ActionRestartTask, busv1alpha1.ActionRestartPod,
			busv1alpha1.ActionAbortJob, busv1alpha1.ActionCompleteJob, busv1alpha1.ActionTerminateJob,
		}
		var all []batchv1alpha1.LifecyclePolicy
		for _, event := range []busv1alpha1.Event{busv1alpha1.EventPodFailed, busv1alpha1.EventPodEvicted, busv1alpha1.EventTaskCompleted} {
			if l.random.IntN(3) == 0 {
				all = append(all, batchv1alpha1.LifecyclePolicy{Event: event, Action: actions[l.random.IntN(len(actions))]})
			}
		}
		return all
	}
	job := newJob()
	job.Name = name
	job.Spec.MaxRetry = int32(1 + l.random.IntN(8))
	job.Spec.Policies = policies()
	for i := range 1 + l.random.IntN(3) {
		task := newTask(string(rune('x'+i)), int32(l.random.IntN(4)))
		task.Policies = policies()
		if i > 0 && l.random.IntN(4) == 0 {
			task.DependsOn = &batchv1alpha1.DependsOn{Name: []string{"x"}}
		}
		job.Spec.Tasks = append(job.Spec.Tasks, task)
	}
	if l.random.IntN(2) == 0 {
		job.Spec.MinAvailable = int32(l.random.IntN(1 + int(replicasOf(job))))
	}
	if l.random.IntN(3) == 0 {
		job.Spec.Plugins = map[string]batchv1alpha1.PluginFlags{batchv1alpha1.PluginSvc: nil}
	}
	return job
}

func replicasOf(job *batchv1alpha1.Job) int32 {
	sum := int32(0)
	for _, task := range job.Spec.Tasks {
		sum += task.Replicas
	}
	return sum
}

// disturb does one random thing of a kind.
func (l *jobLife) disturb(kind disturbance, job *batchv1alpha1.Job) {
	switch kind {
	case disturbRefusals:
		if l.random.IntN(3) == 0 {
			l.faults.drop("")
			return
		}
		for _, name := range []string{"quota", "webhook", "invalid"} {
			if l.random.IntN(2) == 0 {
				l.faults.add(podsRefused(name, fmt.Sprintf("%s-x-", job.Name), podRefusals[name]))
			}
		}
	case disturbPods:
		l.deletePodOf(job, metav1.DeleteOptions{})
	case disturbForce:
		l.deletePodOf(job, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	case disturbLabels:
		if pod := l.podControlledBy(job); pod != nil && pod.DeletionTimestamp == nil {
			l.trace.log("somebody takes the label of Pod %s", pod.Name)
			if status := l.book.phaseOf(job.UID); l.program != nil || status != batchv1alpha1.JobPending && status != batchv1alpha1.JobRunning {
				l.book.noteUnlabelled(pod.UID) // Its restart may be under way.
			}
			apiserver.ChangeAny(l.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { delete(pod.Labels, batchv1alpha1.KeyJobName) })
		}
	case disturbNames:
		l.takeNameOfPod(job.Namespace, job.Name+"-x-0")
	case disturbSpec:
		apiserver.ChangeAny(l.server, job.Namespace, job.Name, func(job *batchv1alpha1.Job) {
			job.Spec.MinAvailable = 0
			job.Spec.Tasks[l.random.IntN(len(job.Spec.Tasks))].Replicas = int32(l.random.IntN(4))
		})
	case disturbStop:
		l.issue(job, []busv1alpha1.Action{
			busv1alpha1.ActionAbortJob, busv1alpha1.ActionResumeJob, busv1alpha1.ActionResumeJob, busv1alpha1.ActionRestartJob, busv1alpha1.ActionRestartPod,
		}[l.random.IntN(5)])
	default:
		l.disturbProgram(kind, watchedForJobs)
	}
}

// issue is a user who issues a Command.
func (l *jobLife) issue(job *batchv1alpha1.Job, action busv1alpha1.Action) {
	l.commands++
	l.trace.log("somebody issues %s for %s", action, job.Name)
	apiserver.Add(l.server, newCommand(fmt.Sprintf("%s-command-%d", job.Name, l.commands), job, action))
}

// makePeace ends all that disturbs, and gives each Job a reason to end.
func (l *jobLife) makePeace() {
	l.endDisturbances(batchv1alpha1.KeyJobName, watchedForJobs)
	for _, job := range l.jobs {
		// What depends on a task of which a Pod has failed waits for ever.
		waits := slices.ContainsFunc(job.Spec.Tasks, func(task batchv1alpha1.TaskSpec) bool { return task.DependsOn != nil })
		if waits || l.random.IntN(3) == 0 {
			l.issue(job, busv1alpha1.ActionTerminateJob)
			continue
		}
		apiserver.Change(l.server, job.Namespace, job.Name, func(job *batchv1alpha1.Job) {
			job.Spec.MinAvailable = 0
			for i := range job.Spec.Tasks {
				job.Spec.Tasks[i].Replicas = max(1, job.Spec.Tasks[i].Replicas)
			}
		})
	}
	l.ends = succeed
}

// awaitEnd holds that each Job comes to its end, that each Command is gone, that the
// controller is at rest then, and that nothing is left when the Jobs are deleted.
func (l *jobLife) awaitEnd() {
	ended := func() bool {
		for _, job := range l.jobs {
			switch phase := apiserver.Find[batchv1alpha1.Job](l.server, job.Namespace, job.Name).Status.State.Phase; phase {
			case batchv1alpha1.JobCompleted, batchv1alpha1.JobFailed, batchv1alpha1.JobTerminated, batchv1alpha1.JobAborted:
			default:
				return false
			}
		}
		return len(apiserver.All[busv1alpha1.Command](l.server, "")) == 0
	}
	for begun := time.Now(); !ended(); l.runNodes(1) {
		if time.Since(begun) > longestPeace {
			for _, job := range l.jobs {
				l.t.Errorf("after %v of peace: Job %s is %+v, and there are %d Commands", longestPeace, job.Name,
					apiserver.Find[batchv1alpha1.Job](l.server, job.Namespace, job.Name).Status, len(apiserver.All[busv1alpha1.Command](l.server, "")))
			}
			return
		}
		l.pass(time.Second)
	}
	var keys []string
	for _, job := range l.jobs {
		keys = append(keys, job.Namespace+"/"+job.Name)
	}
	l.holdAtRest(keys, func(pod *corev1.Pod) bool { return !runs(pod) })
	for _, job := range l.jobs {
		apiserver.DeleteObject[batchv1alpha1.Job](l.server, job.Namespace, job.Name, metav1.DeleteOptions{})
	}
	l.holdAllGone(l.program.frameworks.KnownJobs)
}
