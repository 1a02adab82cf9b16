// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// TestShellLivesOfTrainingJobs leads training jobs of Kubeflow through random lives, in the
// cluster of TestShellLives and with its flags.
func TestShellLivesOfTrainingJobs(t *testing.T) {
	leadLives(t, *shellLives/2, 100, func(t *testing.T, seed uint64) (*trace, func()) {
		l := newTrainingLife(t, seed)
		return l.trace, l.live
	})
}

// trainingLife is a few training jobs in one random cluster. Of a shellLife it has what disturbs
// the controller and not the Frameworks.
type trainingLife struct {
	*shellLife
	jobs []lifeJob
	book *trainingBook
}

// lifeJob is a training job of a life, whatever its kind, as it was made. The functions are about
// what is stored of it.
type lifeJob struct {
	metav1.Object
	policy  *kubeflowv1.RunPolicy
	edit    func(func(*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec))
	isThere func() bool
	remove  func()
}

// addLifeJob makes a job. partsOf are the parts of its spec that all kinds have.
func addLifeJob[T any, P apiserver.Object[T]](l *trainingLife, job P, partsOf func(P) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec)) {
	added := apiserver.Add(l.server, job)
	namespace, name := added.GetNamespace(), added.GetName()
	policy, _ := partsOf(added)
	l.jobs = append(l.jobs, lifeJob{
		Object: added, policy: policy,
		edit: func(edit func(*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec)) {
			apiserver.ChangeAny(l.server, namespace, name, func(job P) { edit(partsOf(job)) })
		},
		isThere: func() bool { return apiserver.Find[T, P](l.server, namespace, name) != nil },
		remove:  func() { apiserver.DeleteObject[T, P](l.server, namespace, name, metav1.DeleteOptions{}) },
	})
}

// addJob makes a job of any kind.
func (l *trainingLife) addJob(name string) {
	switch l.random.IntN(8) {
	case 0, 1, 2:
		addLifeJob(l, l.newTFJob(name), func(job *kubeflowv1.TFJob) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec) {
			return &job.Spec.RunPolicy, job.Spec.TFReplicaSpecs
		})
	case 3:
		addLifeJob(l, l.newPyTorchJob(name), func(job *kubeflowv1.PyTorchJob) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec) {
			return &job.Spec.RunPolicy, job.Spec.PyTorchReplicaSpecs
		})
	case 4:
		job := &kubeflowv1.XGBoostJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		job.Spec.XGBReplicaSpecs = replicaSpecs("xgboost", map[string]int32{"Master": 1, "Worker": int32(l.random.IntN(3))})
		l.choosePolicies(&job.Spec.RunPolicy, job.Spec.XGBReplicaSpecs)
		addLifeJob(l, job, func(job *kubeflowv1.XGBoostJob) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec) {
			return &job.Spec.RunPolicy, job.Spec.XGBReplicaSpecs
		})
	case 5:
		job := &kubeflowv1.PaddleJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		job.Spec.PaddleReplicaSpecs = replicaSpecs("paddle", l.someReplicas("Worker", "Master"))
		l.choosePolicies(&job.Spec.RunPolicy, job.Spec.PaddleReplicaSpecs)
		addLifeJob(l, job, func(job *kubeflowv1.PaddleJob) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec) {
			return &job.Spec.RunPolicy, job.Spec.PaddleReplicaSpecs
		})
	case 6:
		job := &kubeflowv2beta1.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		job.Spec.MPIReplicaSpecs = replicaSpecs("mpi", map[string]int32{"Launcher": 1, "Worker": int32(1 + l.random.IntN(2))})
		l.choosePolicies(&job.Spec.RunPolicy, job.Spec.MPIReplicaSpecs)
		for t, spec := range job.Spec.MPIReplicaSpecs {
			spec.RestartPolicy = ""
			job.Spec.MPIReplicaSpecs[t] = spec
		}
		addLifeJob(l, job, func(job *kubeflowv2beta1.MPIJob) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec) {
			return &job.Spec.RunPolicy, job.Spec.MPIReplicaSpecs
		})
	default:
		job := &kubeflowv1.JAXJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		job.Spec.JAXReplicaSpecs = replicaSpecs("jax", l.someReplicas("Worker"))
		l.choosePolicies(&job.Spec.RunPolicy, job.Spec.JAXReplicaSpecs)
		addLifeJob(l, job, func(job *kubeflowv1.JAXJob) (*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec) {
			return &job.Spec.RunPolicy, job.Spec.JAXReplicaSpecs
		})
	}
}

// trainingDisturbances are the disturbances of the lives of training jobs: here disturbStop is
// who suspends and resumes them, as Kueue does, and disturbConfigMaps who deletes Services and
// PodGroups.
var trainingDisturbances = append(slices.Clone(jobDisturbances), disturbConfigMaps)

// watchedForTraining are the resources that the controller watches for training jobs.
var watchedForTraining = []string{
	"pods", "services", "podgroups", kubeflowv1.TFJobPlural, kubeflowv1.PyTorchJobPlural, kubeflowv1.XGBoostJobPlural,
	kubeflowv1.PaddleJobPlural, kubeflowv1.JAXJobPlural, kubeflowv2beta1.MPIJobPlural, "horizontalpodautoscalers",
}

func newTrainingLife(t *testing.T, seed uint64) *trainingLife {
	random := rand.New(rand.NewPCG(seed, 2))
	l := &trainingLife{shellLife: &shellLife{cluster: newCluster(t, random), seed: seed, odds: map[fault]int{}}}
	runTraining(l.cluster)
	l.faults = newFaults(seed, l.trace)
	l.server.SetHook(l.faults.befall)
	l.book = newTrainingBook(l.cluster)
	l.book.late.sentAt = l.faults.sentAt
	l.server.SetObserver(l.book.observe)
	l.kinds = chooseOfJobs(random, trainingDisturbances)
	return l
}

// live is a while of disturbances, and then peace in which each job comes to its end.
func (l *trainingLife) live() {
	l.trace.log("disturbed by %v", l.kinds)
	for i := range 1 + l.random.IntN(3) {
		l.addJob(string(rune('a' + i)))
	}
	l.startProgram()
	l.slowToEnd = l.random.IntN(3) == 0
	l.ends = func(*corev1.Pod) (int32, bool) {
		code := int32(0)
		if l.failing {
			code = []int32{0, 1, 137}[l.random.IntN(3)]
		}
		return code, l.random.IntN(6) == 0
	}
	for range 20 + l.random.IntN(20) {
		if len(l.kinds) > 0 && l.random.IntN(3) > 0 {
			l.disturb(l.kinds[l.random.IntN(len(l.kinds))])
		}
		l.runNodes(1 + l.random.IntN(3))
		if l.program == nil && l.random.IntN(3) == 0 {
			l.startProgram()
		}
		l.pass(l.pause())
	}
	l.endDisturbances(kubeflowv1.KeyJobName, watchedForTraining)
	l.editEach(func(policy *kubeflowv1.RunPolicy, _ map[string]kubeflowv1.ReplicaSpec) {
		policy.Suspend = ptr.To(false)
	})
	l.ends = succeed
	l.awaitEnd()
	l.stopProgram()
	if !l.awaitPrograms(time.Minute) {
		l.t.Errorf("the controller has not ended")
	}
}

// newTFJob is of v1, or of v1alpha2, by which another core's rules hold.
func (l *trainingLife) newTFJob(name string) *kubeflowv1.TFJob {
	job := newTFJob(l.someReplicas("Worker", "PS", "Chief"))
	job.Name = name
	if l.random.IntN(4) == 0 {
		job.Spec.CreatedAs = kubeflowv1.CreatedAsV1alpha2
		delete(job.Spec.TFReplicaSpecs, "Chief")
		for t, spec := range job.Spec.TFReplicaSpecs {
			policy := []corev1.RestartPolicy{corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure, corev1.RestartPolicyAlways}[l.random.IntN(3)]
			spec.Template.Raw = fmt.Appendf(nil, `{"spec":{"restartPolicy":%q,"containers":[{"name":"tensorflow","image":"busybox"}]}}`, policy)
			job.Spec.TFReplicaSpecs[t] = spec
		}
		return job
	}
	l.choosePolicies(&job.Spec.RunPolicy, job.Spec.TFReplicaSpecs)
	if l.random.IntN(3) == 0 {
		job.Spec.SuccessPolicy = ptr.To(kubeflowv1.SuccessPolicyAllWorkers)
	}
	job.Spec.EnableDynamicWorker = l.random.IntN(4) == 0
	return job
}

func (l *trainingLife) newPyTorchJob(name string) *kubeflowv1.PyTorchJob {
	job := newPyTorchJob(l.someReplicas("Worker"))
	job.Name = name
	if l.random.IntN(2) == 0 {
		job.Spec.PyTorchReplicaSpecs["Master"] = replicaSpecs("pytorch", map[string]int32{"Master": 1})["Master"]
	}
	l.choosePolicies(&job.Spec.RunPolicy, job.Spec.PyTorchReplicaSpecs)
	return job
}

// someReplicas has the first of the types, and maybe the others.
func (l *trainingLife) someReplicas(types ...string) map[string]int32 {
	replicas := map[string]int32{}
	for i, t := range types {
		switch {
		case t == "Chief" && l.random.IntN(3) == 0:
			replicas[t] = 1
		case t != "Chief" && (i == 0 || l.random.IntN(2) == 0):
			replicas[t] = int32(1 + l.random.IntN(3))
		}
	}
	return replicas
}

// choosePolicies gives a job policies that it may have.
func (l *trainingLife) choosePolicies(policy *kubeflowv1.RunPolicy, replicas map[string]kubeflowv1.ReplicaSpec) {
	for _, t := range slices.Sorted(maps.Keys(replicas)) {
		spec := replicas[t]
		spec.RestartPolicy = []kubeflowv1.RestartPolicy{
			"", kubeflowv1.RestartNever, kubeflowv1.RestartOnFailure, kubeflowv1.RestartAlways, kubeflowv1.RestartExitCode,
		}[l.random.IntN(5)]
		replicas[t] = spec
	}
	policy.CleanPodPolicy = []*kubeflowv1.CleanPodPolicy{
		nil, ptr.To(kubeflowv1.CleanPodPolicyNone), ptr.To(kubeflowv1.CleanPodPolicyRunning), ptr.To(kubeflowv1.CleanPodPolicyAll),
	}[l.random.IntN(4)]
	if l.random.IntN(2) == 0 {
		policy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{}
	}
	if l.random.IntN(4) == 0 {
		policy.BackoffLimit = ptr.To(int32(l.random.IntN(4)))
	}
	if l.random.IntN(6) == 0 {
		policy.ActiveDeadlineSeconds = ptr.To(int64(10 + l.random.IntN(200)))
	}
	if l.random.IntN(4) == 0 {
		policy.TTLSecondsAfterFinished = ptr.To([]int32{0, 5, 60}[l.random.IntN(3)])
	}
	if l.random.IntN(6) == 0 {
		policy.Suspend = ptr.To(true)
	}
}

// editEach changes every job.
func (l *trainingLife) editEach(edit func(*kubeflowv1.RunPolicy, map[string]kubeflowv1.ReplicaSpec)) {
	for _, job := range l.jobs {
		job.edit(edit)
	}
}

// disturb does one random thing of a kind.
func (l *trainingLife) disturb(kind disturbance) {
	job := l.jobs[l.random.IntN(len(l.jobs))]
	switch kind {
	case disturbRefusals:
		if l.random.IntN(3) == 0 {
			l.faults.drop("")
			return
		}
		for _, name := range []string{"quota", "webhook", "invalid"} {
			if l.random.IntN(3) == 0 {
				l.faults.add(podsRefused(name, fmt.Sprintf("%s-worker-", job.GetName()), podRefusals[name]))
			}
		}
	case disturbPods:
		l.deletePodOf(job, metav1.DeleteOptions{})
	case disturbForce:
		l.deletePodOf(job, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)})
	case disturbConfigMaps:
		l.deletePartsOf(job)
	case disturbLabels:
		if pod := l.podControlledBy(job); pod != nil && pod.DeletionTimestamp == nil {
			l.trace.log("somebody takes the label of Pod %s", pod.Name)
			l.book.noteUnlabelled(pod.UID)
			apiserver.ChangeAny(l.server, pod.Namespace, pod.Name, func(pod *corev1.Pod) { delete(pod.Labels, kubeflowv1.KeyJobName) })
		}
	case disturbNames:
		l.takeNameOfPod(job.GetNamespace(), job.GetName()+"-worker-0")
	case disturbSpec:
		l.editEach(func(_ *kubeflowv1.RunPolicy, replicas map[string]kubeflowv1.ReplicaSpec) {
			if spec, ok := replicas["Worker"]; ok && l.random.IntN(2) == 0 {
				spec.Replicas = ptr.To(int32(1 + l.random.IntN(4)))
				replicas["Worker"] = spec
			}
		})
	case disturbStop:
		l.editEach(func(policy *kubeflowv1.RunPolicy, _ map[string]kubeflowv1.ReplicaSpec) {
			if l.random.IntN(2) == 0 {
				policy.Suspend = ptr.To(l.random.IntN(2) == 0)
			}
		})
	default:
		l.disturbProgram(kind, watchedForTraining)
	}
}

// deletePartsOf is somebody who deletes what a job has besides its Pods.
func (l *trainingLife) deletePartsOf(job metav1.Object) {
	for _, service := range apiserver.All[corev1.Service](l.server, job.GetNamespace()) {
		if metav1.IsControlledBy(service, job) && l.random.IntN(2) == 0 {
			l.trace.log("somebody deletes Service %s", service.Name)
			apiserver.Remove[corev1.Service](l.server, service.Namespace, service.Name)
		}
	}
}

// awaitEnd holds that each job comes to its end, that the controller is at rest then, and that
// nothing is left when the jobs are deleted.
func (l *trainingLife) awaitEnd() {
	var keys []string
	for _, job := range l.jobs {
		keys = append(keys, job.GetNamespace()+"/"+job.GetName())
	}
	ended := func() bool {
		for _, job := range l.jobs {
			if !l.book.hasEnded(job.GetUID()) {
				return false
			}
		}
		return true
	}
	for begun := time.Now(); !ended(); l.runNodes(1) {
		if time.Since(begun) > longestPeace {
			for _, job := range l.jobs {
				l.t.Errorf("after %v of peace: the job %s is %+v", longestPeace, job.GetName(), l.trainingStatus(job.GetName()))
			}
			return
		}
		l.pass(time.Second)
	}
	// By cleanPodPolicy None all Pods stay, those that were never placed among them.
	l.holdAtRest(keys, func(pod *corev1.Pod) bool { return !runs(pod) || pod.Spec.NodeName == "" })
	for _, job := range l.jobs {
		l.holdTimeToLive(job)
	}
	for _, job := range l.jobs {
		job.remove()
	}
	l.holdAllGone(l.program.frameworks.KnownKubeflowJobs)
}

// holdTimeToLive holds that of the jobs that ended long ago those are left that have no time to
// live.
func (l *trainingLife) holdTimeToLive(job lifeJob) {
	isThere := job.isThere()
	if goes := job.policy.TTLSecondsAfterFinished != nil; goes == isThere {
		l.t.Errorf("the job %s is there: %t; it is to go after its end: %t", job.GetName(), isThere, goes)
	}
}
