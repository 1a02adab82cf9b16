// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HasEnded says whether a Pod has succeeded or failed.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// EndedBeforeDeletion says whether a Pod that is being deleted had ended before that was
// asked for. What a dying Pod comes to does not count.
func EndedBeforeDeletion(pod *corev1.Pod) bool {
	if !HasEnded(pod) || pod.DeletionTimestamp == nil {
		return false
	}
	finished := FinishTime(pod)
	return !finished.IsZero() && finished.Before(DeletionTime(pod))
}

// DeletionTime is when the deletion of a Pod was asked for.
func DeletionTime(pod *corev1.Pod) time.Time {
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// FinishTime is when the last container of a Pod ended, or, where no container tells,
// when its conditions last changed.
func FinishTime(pod *corev1.Pod) time.Time {
	latest := time.Time{}
	note := func(at metav1.Time) {
		if at.After(latest) {
			latest = at.Time
		}
	}
	for _, status := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		if status.State.Terminated != nil {
			note(status.State.Terminated.FinishedAt)
		}
	}
	if latest.IsZero() {
		for _, condition := range pod.Status.Conditions {
			note(condition.LastTransitionTime)
		}
	}
	if latest.IsZero() {
		latest = pod.CreationTimestamp.Time
	}
	return latest
}

// ExitCodes are those of the app containers that have terminated, but 0.
func ExitCodes(pod *corev1.Pod) []int32 {
	var codes []int32
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 && !slices.Contains(codes, ended.ExitCode) {
			codes = append(codes, ended.ExitCode)
		}
	}
	return codes
}

// Restarts is how often containers of a Pod were restarted.
func Restarts(pod *corev1.Pod) int32 {
	n := int32(0)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		n += status.RestartCount
	}
	return n
}
