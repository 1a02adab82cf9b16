// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// What a kubelet would do to Pods that no node runs: those whose scheduler is ByHand.

// Run has Pods of the job run, once they are there. Without names it means all that the job has
// now.
func (j *TrainingJob) Run(pods ...string) *TrainingJob {
	j.t.Helper()
	if len(pods) == 0 {
		pods = slices.Sorted(maps.Keys(j.Pods()))
	}
	return j.report(pods, func(pod *corev1.Pod) { setContainers(pod, corev1.PodRunning, running()) })
}

// End has Pods of the job end with an exit code, one after the other.
func (j *TrainingJob) End(code int32, pods ...string) *TrainingJob {
	j.t.Helper()
	return j.report(pods, func(pod *corev1.Pod) {
		phase := corev1.PodSucceeded
		if code != 0 {
			phase = corev1.PodFailed
		}
		setContainers(pod, phase, terminated(code))
	})
}

// Evict has a Pod of the job fail as one that a node evicts before its containers have started:
// no container says how it ended.
func (j *TrainingJob) Evict(pod string) *TrainingJob {
	j.t.Helper()
	return j.report([]string{pod}, func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
		pod.Status.ContainerStatuses = nil
	})
}

// Lose has the node of a Pod of the job not be heard from.
func (j *TrainingJob) Lose(pod string) *TrainingJob {
	j.t.Helper()
	return j.report([]string{pod}, func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodUnknown })
}

// Restarted has the containers of Pods of the job run, after a number of restarts in place.
func (j *TrainingJob) Restarted(times int32, pods ...string) *TrainingJob {
	j.t.Helper()
	return j.report(pods, func(pod *corev1.Pod) {
		setContainers(pod, corev1.PodRunning, running())
		pod.Status.ContainerStatuses[0].RestartCount = times
	})
}

// Hold has a Pod of the job stay, once it is deleted, until Release lets it go: as if its
// containers took that long to end.
func (j *TrainingJob) Hold(pod string) *TrainingJob {
	j.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata": {"labels": {%q: "true"}, "finalizers": [%q]}}`, jobs.Hold, jobs.Hold)
	if _, err := j.cluster.Kube.CoreV1().Pods(j.Namespace).Patch(j.t.Context(), pod, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		j.t.Fatal(err)
	}
	return j
}

// report changes the statuses of Pods, once they are there. A Pod that is replaced meanwhile, or that the
// API server does not know yet though a watch has shown it, is tried again.
func (j *TrainingJob) report(pods []string, change func(*corev1.Pod)) *TrainingJob {
	j.t.Helper()
	client := j.cluster.Kube.CoreV1().Pods(j.Namespace)
	for _, name := range pods {
		j.Pod(name)
		Eventually(j.t, "the status of Pod "+name+" to be written", func(ctx context.Context) (bool, string, error) {
			pod, err := client.Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				change(pod)
				_, err = client.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			}
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				j.t.Fatalf("writing the status of Pod %s: %v", name, err)
			}
			return err == nil, fmt.Sprint(err), nil
		})
	}
	return j
}

func running() corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}
}

func terminated(code int32) corev1.ContainerState {
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	now := metav1.Now()
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: metav1.NewTime(now.Add(-time.Second)), FinishedAt: now,
	}}
}

// setContainers brings a Pod into a phase and all its containers into a state.
func setContainers(pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) {
	runs := phase == corev1.PodRunning
	ready := corev1.ConditionFalse
	if runs {
		ready = corev1.ConditionTrue
	}
	s := &pod.Status
	s.Phase, s.Reason, s.Message = phase, "", ""
	if s.StartTime == nil {
		s.StartTime = new(metav1.Now())
	}
	s.Conditions = nil
	for _, t := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: t, Status: ready, LastTransitionTime: metav1.Now()})
	}
	before := s.ContainerStatuses
	s.ContainerStatuses = nil
	for i, c := range pod.Spec.Containers {
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Ready: runs, Started: &runs, State: state}
		if i < len(before) {
			status.RestartCount = before[i].RestartCount
		}
		s.ContainerStatuses = append(s.ContainerStatuses, status)
	}
}
