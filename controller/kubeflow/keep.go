// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// KeepOfPod is what decisions read of a Pod, and nothing else: so much is worth caching. Besides what all jobs keep
// of Pods, these are the names of the containers, as the training container is found by its name, and what may end or
// has ended the Pod.
func KeepOfPod(pod *corev1.Pod) *corev1.Pod {
	kept := jobpods.Keep(pod, KeyStart, KeyServices, kubeflowv1.KeyJobName, kubeflowv1.KeyOperatorName, schedulingv1alpha1.LabelPodGroup)
	kept.Spec.ActiveDeadlineSeconds = pod.Spec.ActiveDeadlineSeconds
	for _, container := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: container.Name})
	}
	return kept
}
