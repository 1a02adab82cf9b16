// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpods

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// keptMessage bounds, in bytes, what is kept of a message of a Pod.
const keptMessage = 256

// Keep returns a Pod with only those fields that decisions about jobs of all kinds read, and the labels and annotations
// in keys. Caches store this instead of the whole Pod.
func Keep(pod *corev1.Pod, keys ...string) *corev1.Pod {
	kept := &corev1.Pod{
		TypeMeta:   pod.TypeMeta,
		ObjectMeta: KeepMetadata(pod, keys...),
		Spec:       corev1.PodSpec{NodeName: pod.Spec.NodeName, InitContainers: podend.KeepSidecars(pod)},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Reason:                pod.Status.Reason,
			Message:               text.Shorten(pod.Status.Message, keptMessage),
			InitContainerStatuses: containerStates(pod.Status.InitContainerStatuses),
			ContainerStatuses:     containerStates(pod.Status.ContainerStatuses),
		},
	}
	kept.DeletionGracePeriodSeconds = pod.DeletionGracePeriodSeconds
	for _, condition := range pod.Status.Conditions {
		keep := corev1.PodCondition{Type: condition.Type, Status: condition.Status, LastTransitionTime: condition.LastTransitionTime}
		if condition.Type == corev1.DisruptionTarget {
			keep.Reason, keep.Message = condition.Reason, text.Shorten(condition.Message, keptMessage) // They say who deletes the Pod.
		}
		kept.Status.Conditions = append(kept.Status.Conditions, keep)
	}
	return kept
}

// KeepMetadata returns the part of an object's metadata that caches keep: labels and annotations with the given keys,
// and the reference to the controller. The rest may be a megabyte of a user's text.
func KeepMetadata(object metav1.Object, keys ...string) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{
		Name:              object.GetName(),
		Namespace:         object.GetNamespace(),
		UID:               object.GetUID(),
		ResourceVersion:   object.GetResourceVersion(),
		Labels:            some(object.GetLabels(), keys),
		Annotations:       some(object.GetAnnotations(), keys),
		CreationTimestamp: object.GetCreationTimestamp(),
		DeletionTimestamp: object.GetDeletionTimestamp(),
	}
	if controller := metav1.GetControllerOf(object); controller != nil {
		kept.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return kept
}

// some returns those labels or annotations that have one of the keys. The result is nil only if `all` is nil, because a
// patch that adds the first label differs from a patch that adds a further one.
func some(all map[string]string, keys []string) map[string]string {
	if all == nil {
		return nil
	}
	kept := map[string]string{}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			kept[key] = value
		}
	}
	return kept
}

// containerStates returns the parts of container statuses that decisions read: whether the container is ready, the
// number of restarts, and how the last two runs ended.
func containerStates(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept []corev1.ContainerStatus
	for _, status := range statuses {
		kept = append(kept, corev1.ContainerStatus{
			Name: status.Name, Ready: status.Ready, RestartCount: status.RestartCount,
			State:                corev1.ContainerState{Terminated: endOf(status.State.Terminated)},
			LastTerminationState: corev1.ContainerState{Terminated: endOf(status.LastTerminationState.Terminated)},
		})
	}
	return kept
}

// endOf keeps of the end of a container how, why and when it ended.
func endOf(ended *corev1.ContainerStateTerminated) *corev1.ContainerStateTerminated {
	if ended == nil {
		return nil
	}
	return &corev1.ContainerStateTerminated{ExitCode: ended.ExitCode, Reason: ended.Reason, FinishedAt: ended.FinishedAt}
}
