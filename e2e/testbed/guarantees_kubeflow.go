// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// brokenTrainingGuarantees says what in a history of Kubeflow's jobs must not have happened:
//
//  1. a Pod is made only for the start that its job is at, while that is neither suspended nor
//     over;
//  2. Pods of two starts of a job are never there at the same time;
//  3. an index that has succeeded, or that is on record as failed, is not run again in the same
//     start;
//  4. a job never both succeeds and fails, and nothing of its end changes;
//  5. restarts are counted once each: there are never more of them than Pods that failed and
//     containers that were restarted, and no number goes back within a start. Starts go up one
//     by one.
func brokenTrainingGuarantees(events []event) []string {
	h := trainingHistory{
		jobs: map[types.UID]*trainingRecord{}, pods: map[types.UID]*corev1.Pod{},
		succeeded: map[trainingRun]types.UID{}, spent: map[trainingStart]map[types.UID]int32{},
	}
	for _, e := range events {
		switch {
		case e.training != nil:
			h.jobChanged(e.training, e.gone)
		case e.pod != nil:
			h.podChanged(e.pod, e.gone)
		}
	}
	return h.broken
}

// trainingRecord is a training job as it was stored.
type trainingRecord struct {
	metav1.Object
	status kubeflowv1.JobStatus
}

// trainingHistory is where a replay of events has got to.
type trainingHistory struct {
	jobs map[types.UID]*trainingRecord
	// pods are those that exist.
	pods map[types.UID]*corev1.Pod
	// succeeded are the Pods that have, by what they were made for.
	succeeded map[trainingRun]types.UID
	// spent is what the Pods of a type, in a start, may have cost of restarts, by Pod.
	spent  map[trainingStart]map[types.UID]int32
	broken []string
}

// trainingStart is a type of replicas in a start of a job.
type trainingStart struct {
	job      types.UID
	replicas string
	start    int32
}

// trainingRun is what a Pod is made for.
type trainingRun struct {
	trainingStart
	index int
}

func (h *trainingHistory) complain(format string, args ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
}

// keyTrainingStart is the annotation of Pods that says for which start of their job they were
// made.
const keyTrainingStart = "kubeflow.lockstep.dev/start"

// trainingRunOf is what a Pod is made for; false if it is of no job.
func trainingRunOf(pod *corev1.Pod) (trainingRun, bool) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group != kubeflowv1.GroupName {
		return trainingRun{}, false
	}
	number := func(text string) int {
		n, err := strconv.Atoi(text)
		if err != nil {
			return -1
		}
		return n
	}
	start := trainingStart{owner.UID, pod.Labels[kubeflowv1.KeyReplicaType], int32(number(pod.Annotations[keyTrainingStart]))}
	return trainingRun{start, number(pod.Labels[kubeflowv1.KeyReplicaIndex])}, true
}

func (h *trainingHistory) podChanged(pod *corev1.Pod, gone bool) {
	run, ok := trainingRunOf(pod)
	if !ok {
		return
	}
	if gone {
		delete(h.pods, pod.UID)
		return
	}
	if h.pods[pod.UID] == nil {
		h.podMade(pod, run)
	}
	h.pods[pod.UID] = pod
	if pod.Status.Phase == corev1.PodSucceeded {
		h.succeeded[run] = pod.UID
	}
	cost := int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		cost += c.RestartCount
	}
	if pod.Status.Phase == corev1.PodFailed {
		cost++
	}
	if h.spent[run.trainingStart] == nil {
		h.spent[run.trainingStart] = map[types.UID]int32{}
	}
	h.spent[run.trainingStart][pod.UID] = max(cost, h.spent[run.trainingStart][pod.UID])
}

// podMade looks whether its job wanted a Pod.
func (h *trainingHistory) podMade(pod *corev1.Pod, run trainingRun) {
	job := h.jobs[run.job]
	if job == nil {
		h.complain("Pod %s was made, and its job is gone", pod.Name)
		return
	}
	s := &job.status
	if run.start != s.Starts || s.CompletionTime != nil || isTrue(s, kubeflowv1.JobConditionSuspended) {
		h.complain("Pod %s was made for start %d; job %s is in start %d, [%s], completionTime %v", pod.Name, run.start, job.GetName(), s.Starts, describeConditions(s), s.CompletionTime)
	}
	if before, ran := h.succeeded[run]; ran {
		h.complain("Pod %s was made again: %s had succeeded in start %d", pod.Name, before, run.start)
	}
	if has(replicaStatusOf(s, run.replicas).FailedIndexes, run.index) {
		h.complain("Pod %s was made again: its index has failed for good", pod.Name)
	}
	for _, other := range h.pods {
		if o, _ := trainingRunOf(other); o.job == run.job && o.start != run.start {
			h.complain("Pod %s of start %d was made beside %s of start %d", pod.Name, run.start, other.Name, o.start)
		}
	}
}

func isTrue(s *kubeflowv1.JobStatus, t kubeflowv1.JobConditionType) bool {
	c := ConditionOf(s, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// replicaStatusesOf are those of all types, whatever the version.
func replicaStatusesOf(s *kubeflowv1.JobStatus) map[string]kubeflowv1.ReplicaStatus {
	if len(s.TFReplicaStatuses) > 0 {
		return s.TFReplicaStatuses
	}
	return s.ReplicaStatuses
}

// replicaStatusOf is that of a type as it stands in labels.
func replicaStatusOf(s *kubeflowv1.JobStatus, label string) kubeflowv1.ReplicaStatus {
	for name, of := range replicaStatusesOf(s) {
		if strings.EqualFold(name, label) {
			return of
		}
	}
	return kubeflowv1.ReplicaStatus{}
}

// has says whether a set of indexes such as "0-3,7" has one.
func has(set string, index int) bool {
	for part := range strings.SplitSeq(set, ",") {
		first, last, _ := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		to, errTo := strconv.Atoi(cmp.Or(last, first))
		if err == nil && errTo == nil && from <= index && index <= to {
			return true
		}
	}
	return false
}

func (h *trainingHistory) jobChanged(job *trainingRecord, gone bool) {
	before := h.jobs[job.GetUID()]
	if gone {
		delete(h.jobs, job.GetUID())
		return
	}
	h.jobs[job.GetUID()] = job
	now := &job.status
	if isTrue(now, kubeflowv1.JobConditionSucceeded) && isTrue(now, kubeflowv1.JobConditionFailed) {
		h.complain("job %s has both succeeded and failed", job.GetName())
	}
	for name, of := range replicaStatusesOf(now) {
		most := int32(0)
		for _, n := range h.spent[trainingStart{job.GetUID(), strings.ToLower(name), now.Starts}] {
			most += n
		}
		if of.Restarts > most {
			h.complain("job %s counts %d restarts of %s, and there were %d at most", job.GetName(), of.Restarts, name, most)
		}
	}
	if before == nil {
		return
	}
	old := &before.status
	if now.Starts < old.Starts || now.Starts > old.Starts+1 {
		h.complain("job %s went from start %d to %d", job.GetName(), old.Starts, now.Starts)
	}
	if old.CompletionTime != nil && (!old.CompletionTime.Equal(now.CompletionTime) || old.Phase != now.Phase || !reflect.DeepEqual(old.Conditions, now.Conditions)) {
		h.complain("job %s had ended with [%s] %s at %v, and has now [%s] %s at %v", job.GetName(),
			describeConditions(old), old.Phase, old.CompletionTime, describeConditions(now), now.Phase, now.CompletionTime)
	}
	if now.Starts != old.Starts || isTrue(now, kubeflowv1.JobConditionSuspended) {
		return
	}
	for name, was := range replicaStatusesOf(old) {
		if is, there := replicaStatusesOf(now)[name]; there && is.Restarts < was.Restarts {
			h.complain("job %s counted %d restarts of %s, and now %d", job.GetName(), was.Restarts, name, is.Restarts)
		}
	}
}
