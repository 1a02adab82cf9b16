// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// brokenJobGuarantees says what in a history of Volcano Jobs must not have happened:
//
//  1. a Pod is made only for the version and the retries that its Job is at, while it is Pending
//     or Running;
//  2. Pods of two versions of a Job never run at the same time;
//  3. an index that has ended is not run again in the same version and retry;
//  4. phases follow each other in legal order, one step a write, and final ones stay;
//  5. a restart is counted when it begins, and only then; no number goes back;
//  6. nothing of a Job runs that becomes Aborted or Terminated, or, after Completing, Completed.
//
// A Pod runs, in this sense, from its creation until its containers have ended or it is gone,
// whichever is first.
func brokenJobGuarantees(events []event) []string {
	h := jobHistory{jobs: map[types.UID]*batchv1alpha1.Job{}, pods: map[types.UID]*corev1.Pod{}, ended: map[run]types.UID{}}
	for _, e := range events {
		switch {
		case e.job != nil:
			h.jobChanged(e.job, e.gone)
		case e.pod != nil:
			h.podChanged(e.pod, e.gone)
		}
	}
	return h.broken
}

// jobHistory is where a replay of events has got to.
type jobHistory struct {
	jobs map[types.UID]*batchv1alpha1.Job
	// pods are those that exist.
	pods map[types.UID]*corev1.Pod
	// ended are the Pods that have ended, by what they were made for.
	ended  map[run]types.UID
	broken []string
}

// run is what a Pod is made for.
type run struct {
	job              types.UID
	pod              string
	version, retries int32
}

func (h *jobHistory) complain(format string, args ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// runOf is what a Pod is made for; false if it is of no Job.
func runOf(pod *corev1.Pod) (run, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || owner.Kind != batchv1alpha1.JobKind {
		return run{}, false
	}
	number := func(key string) int32 {
		n, err := strconv.ParseInt(pod.Annotations[key], 10, 32)
		if err != nil {
			return -1
		}
		return int32(n)
	}
	return run{owner.UID, pod.Name, number(batchv1alpha1.KeyJobVersion), number(batchv1alpha1.KeyJobRetryCount)}, true
}

func (h *jobHistory) podChanged(pod *corev1.Pod, gone bool) {
	r, ok := runOf(pod)
	if !ok {
		return
	}
	if gone {
		delete(h.pods, pod.UID)
		return
	}
	if h.pods[pod.UID] == nil {
		h.podMade(pod, r)
	}
	h.pods[pod.UID] = pod
	if hasEnded(pod) && pod.DeletionTimestamp == nil {
		h.ended[r] = pod.UID
	}
	for _, other := range h.pods {
		if o, _ := runOf(other); o.job == r.job && o.version != r.version && !hasEnded(other) && !hasEnded(pod) {
			h.complain("Pod %s of version %d runs beside %s of version %d", pod.Name, r.version, other.Name, o.version)
		}
	}
}

// podMade looks whether its Job wanted a Pod.
func (h *jobHistory) podMade(pod *corev1.Pod, r run) {
	job := h.jobs[r.job]
	if job == nil {
		h.complain("Pod %s was made, and its Job is gone", pod.Name)
		return
	}
	s := job.Status
	if s.State.Phase != batchv1alpha1.JobPending && s.State.Phase != batchv1alpha1.JobRunning || r.version != s.Version || r.retries != s.RetryCount {
		h.complain("Pod %s was made for version %d, retry %d; Job %s is %s, version %d, retry %d",
			pod.Name, r.version, r.retries, job.Name, s.State.Phase, s.Version, s.RetryCount)
	}
	if before, ran := h.ended[r]; ran {
		h.complain("Pod %s was made again: %s had ended in version %d, retry %d", pod.Name, before, r.version, r.retries)
	}
}

// followers are the phases that may follow each, beside itself.
var followers = map[batchv1alpha1.JobPhase][]batchv1alpha1.JobPhase{
	"":                           {batchv1alpha1.JobPending},
	batchv1alpha1.JobPending:     {batchv1alpha1.JobRunning, batchv1alpha1.JobRestarting, batchv1alpha1.JobAborting, batchv1alpha1.JobTerminating, batchv1alpha1.JobCompleting},
	batchv1alpha1.JobRunning:     {batchv1alpha1.JobPending, batchv1alpha1.JobCompleted, batchv1alpha1.JobFailed, batchv1alpha1.JobRestarting, batchv1alpha1.JobAborting, batchv1alpha1.JobTerminating, batchv1alpha1.JobCompleting},
	batchv1alpha1.JobRestarting:  {batchv1alpha1.JobFailed, batchv1alpha1.JobPending, batchv1alpha1.JobAborting, batchv1alpha1.JobTerminating, batchv1alpha1.JobCompleting},
	batchv1alpha1.JobAborting:    {batchv1alpha1.JobAborted, batchv1alpha1.JobRestarting},
	batchv1alpha1.JobAborted:     {batchv1alpha1.JobRestarting},
	batchv1alpha1.JobTerminating: {batchv1alpha1.JobTerminated},
	batchv1alpha1.JobCompleting:  {batchv1alpha1.JobCompleted},
}

func (h *jobHistory) jobChanged(job *batchv1alpha1.Job, gone bool) {
	before := h.jobs[job.UID]
	if gone {
		delete(h.jobs, job.UID)
		return
	}
	h.jobs[job.UID] = job
	if before == nil {
		return
	}
	old, now := before.Status, job.Status
	if old.State.Phase != now.State.Phase && !slices.Contains(followers[old.State.Phase], now.State.Phase) {
		h.complain("Job %s was %q and is %q", job.Name, old.State.Phase, now.State.Phase)
	}
	begins := int32(0)
	resumed := old.State.Phase == batchv1alpha1.JobAborting || old.State.Phase == batchv1alpha1.JobAborted
	if old.State.Phase != now.State.Phase && now.State.Phase == batchv1alpha1.JobRestarting && !resumed {
		begins = 1
	}
	if now.RetryCount != old.RetryCount+begins {
		h.complain("Job %s went from %s with %d retries to %s with %d", job.Name, old.State.Phase, old.RetryCount, now.State.Phase, now.RetryCount)
	}
	if now.Version < old.Version {
		h.complain("Job %s went back from version %d to %d", job.Name, old.Version, now.Version)
	}
	if isStopped(old.State.Phase, now.State.Phase) {
		for _, pod := range h.pods {
			if r, _ := runOf(pod); r.job == job.UID && !hasEnded(pod) {
				h.complain("Job %s is %s, and Pod %s runs", job.Name, now.State.Phase, pod.Name)
			}
		}
	}
}

// isStopped says whether a Job is in a phase, or has just got there, in which nothing of it runs.
// What a Job is Completed of that came to its natural end may still be on its way out.
func isStopped(before, now batchv1alpha1.JobPhase) bool {
	return now == batchv1alpha1.JobAborted || now == batchv1alpha1.JobTerminated ||
		now == batchv1alpha1.JobCompleted && before == batchv1alpha1.JobCompleting
}
