// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	schedutil "k8s.io/kubernetes/pkg/scheduler/util"
)

// RequestTime is how long a write may take: longer than the API server waits for a webhook.
const RequestTime = 45 * time.Second

// ConditionOf returns a Pod's condition of a type, nil if none.
func ConditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	_, condition := podutil.GetPodCondition(&pod.Status, kind)
	return condition
}

// WriteWait writes in one patch of a Pod's status why the Pod waits and for which node it is nominated, as
// kube-scheduler does. The condition gets the Pod's generation; if it is nil, the conditions stay. An empty node
// removes the nomination. WriteWait returns an error if another Pod has taken the name. Most API servers also return an
// error if a bound Pod is nominated.
func WriteWait(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, condition *corev1.PodCondition, node string) error {
	status := pod.Status.DeepCopy()
	if condition != nil {
		told := *condition
		told.ObservedGeneration = podutil.CalculatePodConditionObservedGeneration(&pod.Status, pod.Generation, told.Type)
		podutil.UpdatePodCondition(status, &told)
	}
	status.NominatedNodeName = node
	return schedutil.PatchPodStatus(ctx, newOnlyPodClient(client, pod), pod.Name, pod.Namespace, &pod.Status, status)
}
