// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/testing/jobworld"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

var (
	livesFlag = flag.Uint64("lives", 3000, "how many random lives TestRandomLives leads")
	firstFlag = flag.Uint64("first-seed", 0, "the seed of the first of them; the others count up")
	seedFlag  = flag.Int64("seed", -1, "lead only the random life of this seed, and print it")
)

// TestRandomLives leads jobs of all kinds through random worlds: caches that are behind, each
// kind by itself, events that are missed or come twice, requests that are refused or whose
// replies are lost, crashes between any two writes, controllers that begin with an old
// status, deletions from outside, by force too, names that others have, and users who
// rescale, suspend and resume at any moment. What must always hold is in
// invariants_test.go. A failing life prints its seed; -seed leads it alone.
func TestRandomLives(t *testing.T) {
	if *seedFlag >= 0 {
		l := newLife(t, uint64(*seedFlag))
		l.verbose = true
		l.live()
		return
	}
	lives := *livesFlag
	if testing.Short() {
		lives = min(lives, 300)
	}
	percent := debug.SetGCPercent(400) // garbage is small, and made fast
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	t.Logf("leading %d lives, with the seeds %d to %d", lives, *firstFlag, *firstFlag+lives-1)
	var next atomic.Uint64
	for range runtime.GOMAXPROCS(0) {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			for i := next.Add(1) - 1; i < lives && !t.Failed(); i = next.Add(1) - 1 {
				seed := *firstFlag + i
				newLife(t, seed).live()
				if t.Failed() {
					t.Logf("to see the life alone: go test ./controller/kubeflow -run TestRandomLives -seed %d -v", seed)
				}
			}
		})
	}
}

// life is one job in one random world.
type life struct {
	*world
	random  *rand.Rand
	verbose bool
	truth   truth
}

func newLife(t *testing.T, seed uint64) *life {
	l := &life{random: rand.New(rand.NewPCG(seed, 12)), truth: newTruth()}
	l.world = newWorld(t, l.newJob())
	l.core.options.GangAlways = l.chance(4)
	l.core.options.Services = oneOf(l, kubeflowv1.ServicesPerReplica, kubeflowv1.ServicesPerJob)
	l.core.options.MaxInline = oneOf(l, 0, 1)
	l.Prompt = false
	l.PendingGoAtOnce = l.chance(2)
	l.OnPlan = l.checkPlan
	l.OnWrite = l.checkWrite
	l.BeforeAction, l.OnAction = l.checkDeletion, l.checkAction
	l.OnEvent = func(e plan.Event) { l.log("tell  %s: %s", e.Reason, e.Message) }
	return l
}

// chance is true with the probability 1/of.
func (l *life) chance(of int) bool { return l.random.IntN(of) == 0 }

func oneOf[T any](l *life, all ...T) T { return all[l.random.IntN(len(all))] }

func (l *life) log(format string, args ...any) {
	if l.verbose {
		l.T.Helper()
		l.T.Logf(format, args...)
	}
}

// newJob is a job of any kind that the API server takes.
func (l *life) newJob() *Job {
	for {
		job := &Job{Spec: Spec{Replicas: map[string]kubeflowv1.ReplicaSpec{}}}
		job.Name = "j"
		job.SetGroupVersionKind(tfJob.gvk)
		switch l.random.IntN(10) {
		case 0, 1:
			job.SetGroupVersionKind(pyTorchJob.gvk)
			l.fillTorch(job)
		case 2:
			job.Spec.CreatedAs = kubeflowv1.CreatedAsV1alpha2
			l.fill(job, "tensorflow", kubeflowv1.ReplicaPS, kubeflowv1.ReplicaWorker, kubeflowv1.ReplicaLocal)
		case 3:
			job.SetGroupVersionKind(xgBoostJob.gvk)
			l.fill(job, "xgboost", kubeflowv1.ReplicaWorker)
			job.Spec.Replicas[kubeflowv1.ReplicaMaster] = l.newReplicas("xgboost", 1)
		case 4:
			job.SetGroupVersionKind(paddleJob.gvk)
			l.fill(job, "paddle", kubeflowv1.ReplicaWorker, kubeflowv1.ReplicaMaster)
			l.fillElastic(job)
		case 6, 7:
			job.SetGroupVersionKind(mpiJob.gvk)
			l.fillMPI(job)
		case 5:
			job.SetGroupVersionKind(jaxJob.gvk)
			l.fill(job, "jax", kubeflowv1.ReplicaWorker)
		default:
			l.fill(job, "tensorflow", kubeflowv1.ReplicaWorker, kubeflowv1.ReplicaPS, kubeflowv1.ReplicaChief, kubeflowv1.ReplicaEvaluator)
			job.Spec.SuccessPolicy = oneOf(l, kubeflowv1.SuccessPolicyDefault, kubeflowv1.SuccessPolicyAllWorkers)
			job.Spec.EnableDynamicWorker = l.chance(4)
		}
		job.Spec.RunPolicy = l.newPolicy()
		if l.chance(3) {
			job.Annotations = map[string]string{schedulingv1alpha1.AnnotationMaxRuntime: strconv.Itoa(1 + l.random.IntN(200))}
		}
		if len(Validate(job)) == 0 {
			return job
		}
	}
}

func (l *life) fillTorch(job *Job) {
	l.fill(job, "pytorch", kubeflowv1.ReplicaWorker)
	if l.chance(2) {
		job.Spec.Replicas[kubeflowv1.ReplicaMaster] = l.newReplicas("pytorch", 1)
	}
	l.fillElastic(job)
}

// fillMPI makes a launcher, and maybe workers.
func (l *life) fillMPI(job *Job) {
	l.fill(job, "mpi", kubeflowv1.ReplicaWorker)
	job.Spec.Replicas[kubeflowv1.ReplicaLauncher] = l.newReplicas("mpi", 1)
	for _, name := range jobpods.SortedKeys(job.Spec.Replicas) {
		spec := job.Spec.Replicas[name]
		spec.RestartPolicy = oneOf(l, kubeflowv1.RestartNever, kubeflowv1.RestartOnFailure)
		job.Spec.Replicas[name] = spec
	}
	job.Spec.MPI = &MPI{
		SlotsPerWorker: 1, SSHAuthMountPath: rootSSHPath, RunLauncherAsWorker: l.chance(2),
		LauncherCreationPolicy: oneOf(l, kubeflowv2beta1.LauncherCreationPolicyAtStartup, kubeflowv2beta1.LauncherCreationPolicyWaitForWorkersReady),
		Implementation:         kubeflowv2beta1.MPIImplementationOpenMPI,
	}
}

// fillElastic may make a job elastic.
func (l *life) fillElastic(job *Job) {
	if l.chance(3) {
		job.Spec.ElasticPolicy = &kubeflowv1.ElasticPolicy{MinReplicas: ptr.To[int32](1), MaxReplicas: ptr.To[int32](4)}
		if l.chance(2) {
			job.Spec.ElasticPolicy.Metrics = []kubeflowv1.Metric{{RawExtension: kruntime.RawExtension{Raw: []byte(`{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}}`)}}}
		}
	}
}

// fill gives a job some of the types.
func (l *life) fill(job *Job, container string, types ...string) {
	for _, name := range types {
		if l.chance(2) {
			job.Spec.Replicas[name] = l.newReplicas(container, int32(l.random.IntN(4)))
		}
	}
}

func (l *life) newReplicas(container string, n int32) kubeflowv1.ReplicaSpec {
	return kubeflowv1.ReplicaSpec{
		Replicas: &n,
		RestartPolicy: oneOf(l, kubeflowv1.RestartNever, kubeflowv1.RestartOnFailure, kubeflowv1.RestartOnFailure,
			kubeflowv1.RestartAlways, kubeflowv1.RestartExitCode, kubeflowv1.RestartExitCode),
		Template: kruntime.RawExtension{Raw: []byte(fmt.Sprintf(`{"spec":{"restartPolicy":%q,"containers":[{"name":%q,"image":"i"}]}}`,
			oneOf(l, "Never", "OnFailure", "Always"), container))},
	}
}

func (l *life) newPolicy() kubeflowv1.RunPolicy {
	policy := kubeflowv1.RunPolicy{CleanPodPolicy: ptr.To(oneOf(l, kubeflowv1.CleanPodPolicyAll, kubeflowv1.CleanPodPolicyRunning, kubeflowv1.CleanPodPolicyNone))}
	if l.chance(3) {
		policy.BackoffLimit = ptr.To(int32(l.random.IntN(8)))
	}
	if l.chance(5) {
		policy.ActiveDeadlineSeconds = ptr.To(int64(l.random.IntN(200)))
	}
	if l.chance(5) {
		policy.TTLSecondsAfterFinished = ptr.To(int32(l.random.IntN(2) * 60))
	}
	if l.chance(3) {
		policy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{}
		if l.chance(2) {
			policy.SchedulingPolicy.MinAvailable = ptr.To(int32(1 + l.random.IntN(6)))
		}
	}
	if l.chance(6) {
		policy.Suspend = ptr.To(true)
	}
	return policy
}

// live is a while of chaos, and then peace in which the job comes to its end.
func (l *life) live() {
	l.Fate = l.randomFate
	for range 50 {
		l.disturb()
		l.WriteFrom = oneOf(l, plan.PersistLater, plan.PersistSoon)
		if l.chance(6) {
			l.CrashAfter = l.random.IntN(6)
		}
		for range l.random.IntN(3) { // Events are missed, or come twice.
			l.Run()
		}
		behind := l.Behind()
		for _, kind := range jobpods.SortedKeys(behind) {
			l.Deliver(kind, l.random.IntN(behind[kind]+1))
		}
	}
	l.Crash()
	l.Fate, l.CrashAfter, l.WriteFrom, l.Prompt = func(plan.Action) jobworld.Fate { return jobworld.Done }, -1, plan.PersistLater, true
	l.DeliverAll()
	l.peace()
	l.checkEnd()
}

func (l *life) randomFate(action plan.Action) jobworld.Fate {
	switch l.random.IntN(24) {
	case 0:
		return jobworld.Refused
	case 1:
		if action.Verb == plan.Delete {
			l.truth.lost[action.Name] = true
		}
		return jobworld.ReplyLost
	default:
		return jobworld.Done
	}
}

// disturb does one random thing to the world.
func (l *life) disturb() {
	pod := ""
	if pods := l.OwnPods(); len(pods) > 0 {
		pod = oneOf(l, pods...)
	}
	switch l.random.IntN(20) {
	case 0, 1, 2:
		l.Now = l.Now.Add(time.Duration(l.random.IntN(15)) * time.Second)
	case 3, 4, 5, 6, 7, 8, 9:
		l.advance(pod)
	case 10, 11, 12:
		l.log("node  lets %s go", pod)
		l.EndPod(pod)
	case 13:
		l.rescale()
	case 14:
		l.meddle(pod)
	case 15:
		l.toggle()
	case 16:
		l.restartController()
	default:
		l.DeliverAll()
	}
}

// advance is what a kubelet may report of a Pod.
func (l *life) advance(name string) {
	pod := l.Pod(name)
	if pod == nil {
		return
	}
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodUnknown:
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: oneOf(l, corev1.ConditionTrue, corev1.ConditionFalse)}}
		l.Store(KindPod, pod)
		l.SetPhase(name, oneOf(l, corev1.PodRunning, corev1.PodRunning, corev1.PodRunning, corev1.PodFailed), oneOf[int32](l, 1, 137, -1))
	case corev1.PodRunning:
		switch l.random.IntN(8) {
		case 0, 1:
			l.SetPhase(name, corev1.PodSucceeded, oneOf[int32](l, 0, 0, 0, -1))
		case 2, 3:
			l.EndIn(name, oneOf(l, podways.Ways()...))
		case 4:
			l.SetPhase(name, corev1.PodUnknown, 0)
		case 5:
			pod.Status.ContainerStatuses[0].RestartCount++
			l.Store(KindPod, pod)
		}
	}
	if pod := l.Pod(name); pod != nil {
		l.log("node  %s is %s", name, cmp.Or(podend.Of(pod).String(), string(pod.Status.Phase)))
	}
}

// rescale is the user who changes how many replicas there are, or a limit.
func (l *life) rescale() {
	l.Edit(func(j *Job) {
		spec := j.Spec
		spec.Replicas = map[string]kubeflowv1.ReplicaSpec{}
		for name, r := range j.Spec.Replicas {
			spec.Replicas[name] = r
		}
		if l.chance(5) && spec.RunPolicy.SchedulingPolicy != nil {
			spec.RunPolicy.SchedulingPolicy = &kubeflowv1.SchedulingPolicy{MinAvailable: ptr.To(int32(1 + l.random.IntN(4)))}
		}
		name := oneOf(l, jobpods.SortedKeys(spec.Replicas)...)
		r := spec.Replicas[name]
		r.Replicas = ptr.To(int32(l.random.IntN(5)))
		spec.Replicas[name] = r
		if changed := (&Job{TypeMeta: j.TypeMeta, ObjectMeta: j.ObjectMeta, Spec: spec}); len(Validate(changed)) == 0 {
			j.Spec = spec
			l.log("user  scales %s to %d", name, *r.Replicas)
		}
	})
}

// toggle is the user, or Kueue, who suspends and resumes.
func (l *life) toggle() {
	l.Edit(func(j *Job) {
		suspend := j.Spec.RunPolicy.Suspend == nil || !*j.Spec.RunPolicy.Suspend
		j.Spec.RunPolicy.Suspend = &suspend
		l.log("user  suspends: %v", suspend)
	})
}

// meddle is somebody who deletes what is not theirs, or takes a name.
func (l *life) meddle(pod string) {
	lose := func(kind string) {
		if names := l.Names(kind); len(names) > 0 {
			name := oneOf(l, names...)
			l.log("user  deletes %s %s", kind, name)
			l.Remove(kind, name)
			l.truth.lost[name] = true
		}
	}
	switch l.random.IntN(10) {
	case 0, 1, 2, 3:
		l.log("user  deletes %s", pod)
		l.DeletePod(pod, 30)
	case 4:
		l.log("user  deletes %s by force", pod)
		l.Remove(KindPod, pod)
	case 5:
		lose(KindService)
	case 6:
		lose(KindPodGroup)
	case 7:
		lose(KindAutoscaler)
	case 8:
		name := fmt.Sprintf("j-worker-%d", l.random.IntN(3))
		if l.Pod(name) == nil {
			l.log("user  takes the name %s", name)
			l.take(name)
			l.truth.foreign[l.Pod(name).UID] = true
		}
	case 9:
		if p := l.Pod(pod); p != nil {
			l.log("user  takes the labels of %s", pod)
			p.Labels = nil
			l.Store(KindPod, p)
		}
	}
}

// restartController replaces the controller by one that may begin with the status before the
// last.
func (l *life) restartController() {
	l.log("---- another controller")
	l.Crash()
	if l.chance(4) {
		l.core.options.Services = oneOf(l, kubeflowv1.ServicesPerReplica, kubeflowv1.ServicesPerJob)
	}
	if l.chance(4) {
		l.BeginWithOldStatus()
	}
}

// peace lets everything run to its end.
func (l *life) peace() {
	l.log("---- peace")
	for _, name := range l.Names(KindPod) {
		if l.truth.foreign[l.Pod(name).UID] {
			l.Remove(KindPod, name)
		}
	}
	l.Edit(func(j *Job) { j.Spec.RunPolicy.Suspend = nil })
	for range 60 {
		l.Run()
		if l.Owner.DeletionTimestamp != nil {
			l.Gone = true
			return
		}
		for _, name := range l.OwnPods() {
			l.EndPod(name)
			pod := l.Pod(name)
			if pod == nil || pod.DeletionTimestamp != nil {
				continue
			}
			switch pod.Status.Phase {
			case corev1.PodPending, corev1.PodUnknown:
				l.SetPhase(name, corev1.PodRunning, 0)
			case corev1.PodRunning:
				l.SetPhase(name, corev1.PodSucceeded, 0)
			}
		}
		l.Run()
		l.Now = l.Now.Add(7 * time.Second)
	}
}

// transcript is a status in one line.
func transcript(s *status) string {
	if s == nil {
		return "none"
	}
	statuses := s.ReplicaStatuses
	if len(s.TFReplicaStatuses) > 0 {
		statuses = s.TFReplicaStatuses
	}
	line := fmt.Sprintf("%s start %d [%s]", s.Phase, s.Starts, shown(s))
	for _, name := range jobpods.SortedKeys(statuses) {
		r := statuses[name]
		line += fmt.Sprintf(" %s a%d s%d f%d done=%s failed=%s going=%s restarts=%d", name, r.Active, r.Succeeded, r.Failed,
			r.CompletedIndexes, r.FailedIndexes, r.RestartingIndexes, r.Restarts)
	}
	return line
}
