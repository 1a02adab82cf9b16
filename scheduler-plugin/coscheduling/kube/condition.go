// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// ConditionOf is a condition of a Pod, nil if it has none of the type.
func ConditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	_, condition := podutil.GetPodCondition(&pod.Status, kind)
	return condition
}

// WriteCondition writes a condition of a Pod as kube-scheduler does: it says which
// generation of the Pod it is about, and patches the status.
func WriteCondition(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, condition corev1.PodCondition) error {
	condition.ObservedGeneration = podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, condition.Type)
	status := pod.Status.DeepCopy()
	podutil.UpdatePodCondition(status, &condition)
	return schedutil.PatchPodStatus(ctx, client, pod.Name, pod.Namespace, &pod.Status, status)
}
