// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/controller/kubeflow"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// trainingBook has everything that is stored of training jobs of Kubeflow, and holds on each
// change what must be true of it: that what has ended has ended, that starts and restarts only
// grow, that no index is run again that has ended, and that no Pod of a start is made while one
// of an earlier start runs, or while the job is suspended.
type trainingBook struct {
	witness

	mu sync.Mutex
	// leading says which process runs now. What another one has asked for gets to the server
	// late.
	leading func() string
	// unseen are Pods that a controller may overlook when it begins the next start: such as
	// were made late, or have lost their label while that may be under way.
	unseen map[types.UID]bool
	late   lateStatuses
	jobs   map[types.UID]*kubeflowv1.JobStatus
	pods   map[types.NamespacedName]*corev1.Pod
}

func newTrainingBook(c *cluster) *trainingBook {
	return &trainingBook{
		witness: witness{t: c.t, trace: c.trace}, leading: c.book.leader, unseen: map[types.UID]bool{},
		jobs: map[types.UID]*kubeflowv1.JobStatus{}, pods: map[types.NamespacedName]*corev1.Pod{},
	}
}

// noteUnlabelled notes a Pod that somebody takes the label of.
func (b *trainingBook) noteUnlabelled(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unseen[pod] = true
}

// observe is an apiserver.Observer.
func (b *trainingBook) observe(w *apiserver.Written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trace.verbose && w.Resource != "events" {
		b.trace.log("    %s writes %s %s (created %t, removed %t)", w.Process, w.Resource, w.Key, w.Created(), w.Removed())
	}
	switch w.Resource {
	case kubeflowv1.TFJobPlural:
		onJob(b, w, func(job *kubeflowv1.TFJob) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus) {
			return &job.Spec.RunPolicy, &job.Status
		})
	case kubeflowv1.PyTorchJobPlural:
		onJob(b, w, func(job *kubeflowv1.PyTorchJob) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus) {
			return &job.Spec.RunPolicy, &job.Status
		})
	case kubeflowv1.XGBoostJobPlural:
		onJob(b, w, func(job *kubeflowv1.XGBoostJob) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus) {
			return &job.Spec.RunPolicy, &job.Status
		})
	case kubeflowv1.PaddleJobPlural:
		onJob(b, w, func(job *kubeflowv1.PaddleJob) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus) {
			return &job.Spec.RunPolicy, &job.Status
		})
	case kubeflowv1.JAXJobPlural:
		onJob(b, w, func(job *kubeflowv1.JAXJob) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus) {
			return &job.Spec.RunPolicy, &job.Status
		})
	case kubeflowv2beta1.MPIJobPlural:
		onJob(b, w, func(job *kubeflowv2beta1.MPIJob) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus) {
			return &job.Spec.RunPolicy, &job.Status
		})
	case "pods":
		b.onPod(w)
	}
}

// onJob notes what is stored of a job of a kind.
func onJob[T any, P apiserver.Object[T]](b *trainingBook, w *apiserver.Written, partsOf func(P) (*kubeflowv1.RunPolicy, *kubeflowv1.JobStatus)) {
	if job := apiserver.After[T, P](w); job != nil {
		_, status := partsOf(job)
		b.onStatus(w, job.GetUID(), status)
		return
	}
	policy, status := partsOf(apiserver.Before[T, P](w))
	b.onRemoval(w, policy, status)
}

func isTrue(status *kubeflowv1.JobStatus, t kubeflowv1.JobConditionType) bool {
	for _, condition := range status.Conditions {
		if condition.Type == t {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func hasFinished(status *kubeflowv1.JobStatus) bool {
	return status.Phase == kubeflowv1.JobSucceeded || status.Phase == kubeflowv1.JobFailed
}

func (b *trainingBook) onStatus(w *apiserver.Written, uid types.UID, is *kubeflowv1.JobStatus) {
	was := b.jobs[uid]
	b.jobs[uid] = is
	if was == nil {
		return
	}
	if isController(w) && w.Process != b.leading() {
		b.late.note(uid)
	}
	if was.Phase != is.Phase || says(was) != says(is) {
		b.trace.log("      %s %s is %s: %s", w.Resource, w.Key, is.Phase, says(is))
	}
	if isTrue(is, kubeflowv1.JobConditionSucceeded) && isTrue(is, kubeflowv1.JobConditionFailed) {
		b.wrong("%s %s has succeeded and failed", w.Resource, w.Key)
	}
	if hasFinished(was) {
		if diff := cmp.Diff(was.Conditions, is.Conditions); diff != "" || was.Phase != is.Phase || !was.CompletionTime.Equal(is.CompletionTime) {
			b.wrong("%s %s had ended, and is told of otherwise (-was +is):\n%s", w.Resource, w.Key, diff)
		}
	}
	if is.Starts != was.Starts && is.Starts != was.Starts+1 {
		b.wrong("%s %s: start %d is followed by %d", w.Resource, w.Key, was.Starts, is.Starts)
	}
	if is.Starts != was.Starts || isTrue(is, kubeflowv1.JobConditionSuspended) {
		return // All begins anew.
	}
	for name, before := range was.ReplicaStatuses {
		if after := is.ReplicaStatuses[name]; after.Restarts < before.Restarts {
			b.wrong("%s %s: %d restarts of %s become %d", w.Resource, w.Key, before.Restarts, name, after.Restarts)
		}
	}
}

// onRemoval holds that the controller deletes no job but one that has ended, by what is stored, for
// as long as it says.
func (b *trainingBook) onRemoval(w *apiserver.Written, policy *kubeflowv1.RunPolicy, last *kubeflowv1.JobStatus) {
	b.trace.log("      %s %s is deleted by %q", w.Resource, w.Key, w.Process)
	if !isController(w) {
		return
	}
	if ttl := policy.TTLSecondsAfterFinished; ttl == nil || !hasFinished(last) || time.Since(last.CompletionTime.Time) < time.Duration(*ttl)*time.Second {
		b.wrong("%s %s is deleted in phase %s, completed at %v, with the time to live %v", w.Resource, w.Key, last.Phase, last.CompletionTime, ttl)
	}
}

// hasEnded says whether a job has, which may be gone since.
func (b *trainingBook) hasEnded(job types.UID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	status := b.jobs[job]
	return status != nil && hasFinished(status)
}

func (b *trainingBook) onPod(w *apiserver.Written) {
	pod := apiserver.After[corev1.Pod](w)
	if pod == nil {
		delete(b.pods, w.Key)
		return
	}
	b.pods[w.Key] = pod
	owner := metav1.GetControllerOfNoCopy(pod)
	if !w.Created() || !isController(w) || owner == nil {
		return
	}
	if w.Process != b.leading() || b.late.excuse(w, owner.UID) {
		b.unseen[pod.UID] = true
		return
	}
	status := b.jobs[owner.UID]
	if status == nil {
		return // The cache is behind: the garbage collector takes it.
	}
	start := startOfPod(pod)
	if start > status.Starts {
		b.wrong("Pod %s is made for start %d, the status knows %d", w.Key, start, status.Starts)
	}
	if start < status.Starts {
		return // It was asked for before, and is deleted.
	}
	if hasFinished(status) || isTrue(status, kubeflowv1.JobConditionSuspended) {
		b.wrong("Pod %s is made for a job that is %s: %s", w.Key, status.Phase, says(status))
	}
	if index, err := strconv.Atoi(pod.Labels[kubeflowv1.KeyReplicaIndex]); err == nil {
		for name, replicas := range status.ReplicaStatuses {
			done := make(jobpods.Indexes, index+1)
			done.Read(replicas.CompletedIndexes)
			if strings.EqualFold(name, pod.Labels[kubeflowv1.KeyReplicaType]) && done.Has(int32(index)) {
				b.wrong("Pod %s is made again, although it has succeeded", w.Key)
			}
		}
	}
	for key, other := range b.pods {
		if older := startOfPod(other); older < start && key != w.Key && !b.unseen[other.UID] && other.OwnerReferences != nil &&
			metav1.GetControllerOfNoCopy(other).UID == owner.UID && runs(other) {
			b.wrong("Pod %s of start %d is made while %s of start %d runs", w.Key, start, key, older)
		}
	}
}

// startOfPod is the start that a Pod was made for.
func startOfPod(pod *corev1.Pod) int32 {
	start, _ := strconv.ParseInt(pod.Annotations[kubeflow.KeyStart], 10, 32)
	return int32(start)
}
