// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// KeepOfPod returns a Pod reduced to the fields that decisions read, for the cache. Besides the fields that are kept
// for all jobs, these are the names of containers, by which the training container is found, and the fields that show
// how a Pod has ended or may end.
func KeepOfPod(pod *corev1.Pod) *corev1.Pod {
	kept := jobpods.Keep(pod, KeyStart, KeyServices, kubeflowv1.KeyJobName, kubeflowv1.KeyOperatorName, schedulingv1alpha1.LabelPodGroup)
	kept.Spec.ActiveDeadlineSeconds = pod.Spec.ActiveDeadlineSeconds
	for _, container := range pod.Spec.Containers {
		kept.Spec.Containers = append(kept.Spec.Containers, corev1.Container{Name: container.Name})
	}
	return kept
}
