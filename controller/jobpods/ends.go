// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// HasEnded reports whether a Pod has succeeded or failed.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// EndedForGood reports whether a Pod has succeeded or failed and is not being deleted. The end of a Pod that is being
// deleted does not count, even if the end came first: the kubelet also sets a Pod to Failed that was deleted before the
// containers started, and times don't tell the two cases apart, as the kubelet's clock may be behind. An end that the
// controller saw before the deletion counts.
func EndedForGood(pod *corev1.Pod) bool { return HasEnded(pod) && !IsBeingDeleted(pod) }

// IsBeingDeleted reports whether a Pod is being deleted, or is about to be. If a Pod's node is gone, the garbage
// collector of Pods first sets the Pod to Failed, and then deletes it by a second request. The controller may see the
// Pod in between, and treats it as being deleted.
func IsBeingDeleted(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || podend.IsAboutToBeDeleted(pod)
}

// DeletionTime returns when the deletion of a Pod was requested. The result is zero if IsBeingDeleted is false for the
// Pod.
func DeletionTime(pod *corev1.Pod) time.Time {
	if pod.DeletionTimestamp == nil {
		if podend.IsAboutToBeDeleted(pod) {
			return podend.DisruptedAt(pod)
		}
		return time.Time{}
	}
	at := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at
}

// FinishTime returns when the last container of a Pod ended; init containers count, too. If no container has a time, it
// returns when the Pod's conditions last changed, and if there are none, when the Pod was created.
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

// ExitCodes returns the nonzero exit codes of the terminated containers, without sidecars. ExitCodes returns none for a
// Pod that the cluster ended: the program did not choose these codes.
func ExitCodes(pod *corev1.Pod) []int32 {
	if podend.Of(pod).ByCluster() {
		return nil
	}
	var codes []int32
	for _, status := range podend.Deciding(pod) {
		if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 && !slices.Contains(codes, ended.ExitCode) {
			codes = append(codes, ended.ExitCode)
		}
	}
	return codes
}

// Restarts returns how often containers of a Pod were restarted.
func Restarts(pod *corev1.Pod) int32 {
	n := int32(0)
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		n += status.RestartCount
	}
	return n
}
