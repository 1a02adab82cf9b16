// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// jobBook has everything that is stored of Volcano Jobs, and holds on each change what must
// be true of it: that the phases come in legal order and that none is skipped, that each
// restart counts once, that a Command is executed once at most, and that no Pod of a version
// is made while one of an older version runs.
type jobBook struct {
	witness

	mu sync.Mutex
	// leading says which process runs now. What another one has asked for gets to the server
	// late.
	leading func() string
	// unseen are Pods that a controller may overlook when it makes those of the next version:
	// such as were made late, or have lost their label while a restart may be under way.
	unseen map[types.UID]bool
	late   lateStatuses
	jobs   map[types.UID]*batchv1alpha1.Job
	pods   map[types.NamespacedName]*corev1.Pod
	// phases are those that a Job had, by its key.
	phases map[string][]batchv1alpha1.JobPhase
	// executed has how often a state named a Command, by the Command's UID.
	executed map[string]int
	// changed is when the status of a Job was last written.
	changed map[types.UID]time.Time
}

func newJobBook(c *cluster) *jobBook {
	return &jobBook{
		witness: witness{t: c.t, trace: c.trace}, leading: c.book.leader, unseen: map[types.UID]bool{}, jobs: map[types.UID]*batchv1alpha1.Job{}, pods: map[types.NamespacedName]*corev1.Pod{},
		phases: map[string][]batchv1alpha1.JobPhase{}, executed: map[string]int{}, changed: map[types.UID]time.Time{},
	}
}

// phaseOf is the phase of a Job, empty if it has none.
func (b *jobBook) phaseOf(job types.UID) batchv1alpha1.JobPhase {
	b.mu.Lock()
	defer b.mu.Unlock()
	if known := b.jobs[job]; known != nil {
		return known.Status.State.Phase
	}
	return ""
}

// noteUnlabelled notes a Pod that somebody takes the label of.
func (b *jobBook) noteUnlabelled(pod types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unseen[pod] = true
}

// observe is an apiserver.Observer.
func (b *jobBook) observe(w *apiserver.Written) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trace.verbose && w.Resource != "events" {
		b.trace.log("    %s writes %s %s (created %t, removed %t)", w.Process, w.Resource, w.Key, w.Created(), w.Removed())
	}
	switch w.Resource {
	case "jobs":
		b.onJob(w)
	case "pods":
		b.onPod(w)
	}
}

// nextPhases are the legal steps.
var nextPhases = map[batchv1alpha1.JobPhase][]batchv1alpha1.JobPhase{
	"":                           {batchv1alpha1.JobPending},
	batchv1alpha1.JobPending:     {batchv1alpha1.JobRunning, batchv1alpha1.JobRestarting, batchv1alpha1.JobAborting, batchv1alpha1.JobTerminating, batchv1alpha1.JobCompleting},
	batchv1alpha1.JobRunning:     {batchv1alpha1.JobPending, batchv1alpha1.JobCompleted, batchv1alpha1.JobFailed, batchv1alpha1.JobRestarting, batchv1alpha1.JobAborting, batchv1alpha1.JobTerminating, batchv1alpha1.JobCompleting},
	batchv1alpha1.JobRestarting:  {batchv1alpha1.JobFailed, batchv1alpha1.JobPending, batchv1alpha1.JobAborting, batchv1alpha1.JobTerminating, batchv1alpha1.JobCompleting},
	batchv1alpha1.JobAborting:    {batchv1alpha1.JobAborted, batchv1alpha1.JobRestarting},
	batchv1alpha1.JobAborted:     {batchv1alpha1.JobRestarting},
	batchv1alpha1.JobTerminating: {batchv1alpha1.JobTerminated},
	batchv1alpha1.JobCompleting:  {batchv1alpha1.JobCompleted},
}

func (b *jobBook) onJob(w *apiserver.Written) {
	job := apiserver.After[batchv1alpha1.Job](w)
	if job == nil {
		delete(b.jobs, w.Metadata().UID)
		return
	}
	before := b.jobs[job.UID]
	b.jobs[job.UID] = job
	if before == nil {
		return
	}
	was, is := before.Status, job.Status
	b.changed[job.UID] = time.Now()
	if isController(w) && w.Process != b.leading() {
		b.late.note(job.UID)
	}
	if was.State.Phase == is.State.Phase {
		if was.RetryCount != is.RetryCount || was.Version != is.Version {
			b.wrong("Job %s: retryCount %d, version %d become %d, %d without a change of phase", w.Key, was.RetryCount, was.Version, is.RetryCount, is.Version)
		}
		return
	}
	b.trace.log("      Job %s becomes %s: %s", w.Key, is.State.Phase, is.State.Message)
	key := w.Key.String()
	b.phases[key] = append(b.phases[key], is.State.Phase)
	if !slices.Contains(nextPhases[was.State.Phase], is.State.Phase) {
		b.wrong("Job %s: %s becomes %s", w.Key, was.State.Phase, is.State.Phase)
	}
	restarts := int32(0)
	resumed := was.State.Phase == batchv1alpha1.JobAborting || was.State.Phase == batchv1alpha1.JobAborted
	if is.State.Phase == batchv1alpha1.JobRestarting && !resumed {
		restarts = 1
	}
	if is.RetryCount != was.RetryCount+restarts {
		b.wrong("Job %s: %d restarts become %d when %s becomes %s", w.Key, was.RetryCount, is.RetryCount, was.State.Phase, is.State.Phase)
	}
	if rest, found := strings.CutPrefix(is.State.Message, "Command "); found && is.Version > was.Version {
		uid, _, _ := strings.Cut(rest, ": ")
		if b.executed[uid]++; b.executed[uid] > 1 {
			b.wrong("Job %s: the Command %s is executed once more", w.Key, uid)
		}
	}
}

func (b *jobBook) onPod(w *apiserver.Written) {
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
	job := b.jobs[owner.UID]
	if job == nil {
		return // The cache is behind: the garbage collector takes it.
	}
	version, _ := strconv.Atoi(pod.Annotations[batchv1alpha1.KeyJobVersion])
	if phase := job.Status.State.Phase; phase != batchv1alpha1.JobPending && phase != batchv1alpha1.JobRunning && int32(version) >= job.Status.Version {
		b.wrong("Pod %s is made for a Job that is %s", w.Key, phase)
	}
	for key, other := range b.pods {
		older, _ := strconv.Atoi(other.Annotations[batchv1alpha1.KeyJobVersion])
		if older < version && key != w.Key && !b.unseen[other.UID] && metav1.IsControlledBy(other, job) && runs(other) {
			b.wrong("Pod %s of version %d is made while %s of version %d runs", w.Key, version, key, older)
		}
	}
}

// runs says whether a Pod has not ended.
func runs(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
