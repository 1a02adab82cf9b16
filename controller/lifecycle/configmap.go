// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// newConfigMap returns the ConfigMap of the Framework's present attempt. The ConfigMap has no data: its UID identifies
// the attempt. Because of the finalizer, each deletion of the ConfigMap waits for the Pods, so that two attempts never
// overlap.
func newConfigMap(framework *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name:        status.AttemptStatus.ConfigMapName,
		Namespace:   framework.Namespace,
		Labels:      attemptLabels(framework),
		Annotations: attemptAnnotations(framework, &status.AttemptStatus),
		Finalizers:  []string{metav1.FinalizerDeleteDependents},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(framework, frameworkv1.FrameworkGroupVersionKind),
		},
	}}
}

// newPodGroup returns the PodGroup of the attempt.
func newPodGroup(framework *frameworkv1.Framework, attempt *frameworkv1.FrameworkAttemptStatus, spec schedulingv1alpha1.PodGroupSpec) *schedulingv1alpha1.PodGroup {
	annotations := attemptAnnotations(framework, attempt)
	annotations[frameworkv1.KeyConfigMapUID] = string(*attempt.ConfigMapUID)
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name:            frameworkv1.PodGroupName(framework.Name),
			Namespace:       framework.Namespace,
			Labels:          attemptLabels(framework),
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{configMapOwner(attempt)},
		},
		Spec: spec,
	}
}

func attemptLabels(framework *frameworkv1.Framework) map[string]string {
	return map[string]string{frameworkv1.KeyFrameworkName: framework.Name}
}

func attemptAnnotations(framework *frameworkv1.Framework, attempt *frameworkv1.FrameworkAttemptStatus) map[string]string {
	return map[string]string{
		frameworkv1.KeyFrameworkNamespace: framework.Namespace,
		frameworkv1.KeyFrameworkName:      framework.Name,
		frameworkv1.KeyConfigMapName:      attempt.ConfigMapName,
		frameworkv1.KeyFrameworkUID:       string(framework.UID),
		frameworkv1.KeyFrameworkAttemptID: strconv.Itoa(int(attempt.ID)),
	}
}

// configMapOwner makes the attempt's ConfigMap the controller of an object.
func configMapOwner(attempt *frameworkv1.FrameworkAttemptStatus) metav1.OwnerReference {
	owner := &metav1.ObjectMeta{Name: attempt.ConfigMapName, UID: *attempt.ConfigMapUID}
	return *metav1.NewControllerRef(owner, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
}
