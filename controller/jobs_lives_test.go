// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	quiet(t)
	if *shellSeed >= 0 {
		leadJobLife(t, uint64(*shellSeed), true)
		return
	}
	lives := *shellLives / 2
	if testing.Short() {
		lives = min(lives, 100)
	}
	t.Logf("leading %d lives, with the seeds %d to %d", lives, *shellFirst, *shellFirst+lives-1)
	var next atomic.Uint64
	var failed atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1) - 1; i < lives && failed.Load() < *shellFails; i = next.Add(1) - 1 {
				seed := *shellFirst + i
				if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) { leadJobLife(t, seed, false) }) {
					failed.Add(1)
				}
			}
		})
	}
}

func leadJobLife(t *testing.T, seed uint64, verbose bool) {
	defer func() {
		if err := recover(); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if t.Failed() {
			t.Logf("to see the life alone: go test ./controller -run TestShellLivesOfJobs -shell-seed %d -v", seed)
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		l := newJobLife(t, seed)
		l.trace.verbose = verbose
		defer l.trace.print()
		l.live()
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
	l.server.SetObserver(l.book.observe)
	for _, index := range random.Perm(len(jobDisturbances))[:random.IntN(7)] {
		l.kinds = append(l.kinds, jobDisturbances[index])
	}
	if random.IntN(8) == 0 {
		l.kinds = slices.Clone(jobDisturbances)
	}
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
	case disturbRequests:
		l.changeOdds(faultConflict, faultThrottled, faultInternal, faultUnavailable, faultBroken)
	case disturbAnswers:
		l.changeOdds(faultLostAnswer, faultSlow, faultSlowAnswer)
	case disturbLate:
		l.changeOdds(faultLate)
		if l.random.IntN(3) == 0 {
			l.crash()
		}
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
	case disturbWatches:
		l.disturbWatch(watchedForJobs[l.random.IntN(len(watchedForJobs))])
	case disturbCrashes:
		l.crash()
	case disturbRestarts:
		if l.program == nil {
			l.startProgram()
		} else {
			l.stopProgram()
		}
	case disturbPods:
		l.deletePodOf(job, metav1.DeleteOptions{})
	case disturbForce:
		l.deletePodOf(job, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	case disturbLabels:
		if pod := l.podOfJob(job); pod != nil && pod.DeletionTimestamp == nil {
			l.trace.log("somebody takes the label of Pod %s", pod.Name)
			if status := l.book.phaseOf(job.UID); l.program != nil || status != batchv1alpha1.JobPending && status != batchv1alpha1.JobRunning {
				l.book.noteUnlabelled(pod.UID) // Its restart may be under way.
			}
			apiserver.ChangeAny(l.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { delete(pod.Labels, batchv1alpha1.KeyJobName) })
		}
	case disturbNames:
		l.takeNameOf(job)
	case disturbSpec:
		apiserver.ChangeAny(l.server, job.Namespace, job.Name, func(job *batchv1alpha1.Job) {
			job.Spec.MinAvailable = 0
			job.Spec.Tasks[l.random.IntN(len(job.Spec.Tasks))].Replicas = int32(l.random.IntN(4))
		})
	case disturbStop:
		l.issue(job, []busv1alpha1.Action{
			busv1alpha1.ActionAbortJob, busv1alpha1.ActionResumeJob, busv1alpha1.ActionResumeJob, busv1alpha1.ActionRestartJob, busv1alpha1.ActionRestartPod,
		}[l.random.IntN(5)])
	case disturbNodes:
		l.changeNodes()
	case disturbFailures:
		l.failing = !l.failing
	case disturbClock:
		l.server.SetSkew(time.Duration(l.random.IntN(121)-60) * time.Minute)
	}
}

// issue is a user who issues a Command.
func (l *jobLife) issue(job *batchv1alpha1.Job, action busv1alpha1.Action) {
	l.commands++
	l.trace.log("somebody issues %s for %s", action, job.Name)
	apiserver.Add(l.server, newCommand(fmt.Sprintf("%s-command-%d", job.Name, l.commands), job, action))
}

// podOfJob is a Pod of a Job, nil if there is none.
func (l *jobLife) podOfJob(job *batchv1alpha1.Job) *corev1.Pod {
	pods := slices.DeleteFunc(apiserver.All[corev1.Pod](l.server, job.Namespace), func(pod *corev1.Pod) bool {
		return !metav1.IsControlledBy(pod, job)
	})
	if len(pods) == 0 {
		return nil
	}
	return pods[l.random.IntN(len(pods))]
}

func (l *jobLife) deletePodOf(job *batchv1alpha1.Job, options metav1.DeleteOptions) {
	if pod := l.podOfJob(job); pod != nil {
		l.trace.log("somebody deletes Pod %s", pod.Name)
		apiserver.DeleteObject[corev1.Pod](l.server, pod.Namespace, pod.Name, options)
	}
}

// takeNameOf is somebody who has a Pod of a name that the controller will want, or gives it
// back.
func (l *jobLife) takeNameOf(job *batchv1alpha1.Job) {
	name := job.Name + "-x-0"
	switch pod := apiserver.Find[corev1.Pod](l.server, job.Namespace, name); {
	case pod == nil:
		l.trace.log("somebody takes the name %s", name)
		apiserver.Add(l.server, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name, Labels: map[string]string{squatter: ""}},
			Spec:       corev1.PodSpec{NodeName: "node-0"}, Status: corev1.PodStatus{Phase: corev1.PodUnknown},
		})
	case pod.Labels[squatter] == "" && metav1.GetControllerOf(pod) == nil:
		apiserver.Remove[corev1.Pod](l.server, job.Namespace, name)
	}
}

// makePeace ends all that disturbs, and gives each Job a reason to end.
func (l *jobLife) makePeace() {
	l.trace.log("peace begins")
	l.faults.set(nil)
	l.faults.drop("")
	clear(l.lostNodes)
	l.busy, l.failing, l.slowToEnd = false, false, false
	l.server.SetSkew(0)
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			apiserver.Remove[corev1.Pod](l.server, pod.Namespace, pod.Name)
			continue
		}
		apiserver.ChangeAny(l.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { // Else it is looked at for ever.
			pod.Labels[batchv1alpha1.KeyJobName] = owner.Name
		})
	}
	if l.program == nil {
		l.startProgram()
	}
	l.program.process.KillAfter(-1)
	for _, resource := range watchedForJobs {
		l.program.process.Delay(resource, 0)
		l.program.process.ReleaseAll(resource)
	}
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
	for range 10 {
		l.pass(30 * time.Second)
		l.runNodes(1)
	}
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		if runs(pod) {
			l.t.Errorf("Pod %s is left behind", pod.Name)
		}
	}
	before := l.jobRequests()
	l.pass(time.Hour)
	if after := l.jobRequests(); after != before {
		l.t.Errorf("there were %d requests in an hour in which there was nothing to do", after-before)
	}
	for _, job := range l.jobs {
		apiserver.DeleteObject[batchv1alpha1.Job](l.server, job.Namespace, job.Name, metav1.DeleteOptions{})
	}
	for range 5 {
		l.pass(10 * time.Second)
		l.runNodes(1)
	}
	if known := l.program.frameworks.KnownJobs(); known > 0 {
		l.t.Errorf("the controller remembers %d Jobs when all are gone", known)
	}
	for _, pod := range apiserver.All[corev1.Pod](l.server, "") {
		l.t.Errorf("Pod %s is left behind when its Job is gone", pod.Name)
	}
}

// jobRequests is how many requests the controller has made for Jobs.
func (l *jobLife) jobRequests() int {
	total := 0
	for _, job := range l.jobs {
		requests, _ := l.faults.count(job.Namespace + "/" + job.Name)
		total += requests
	}
	return total
}
