// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	"github.com/lockstep-k8s/lockstep/controller/engine"
)

// Pods reads and writes Pods.
func Pods(client kubernetes.Interface) engine.Client {
	return engine.ClientOf[*corev1.Pod, *corev1.PodList](client.CoreV1().Pods)
}

// ConfigMaps reads and writes ConfigMaps.
func ConfigMaps(client kubernetes.Interface) engine.Client {
	return engine.ClientOf[*corev1.ConfigMap, *corev1.ConfigMapList](client.CoreV1().ConfigMaps)
}

// Services reads and writes Services.
func Services(client kubernetes.Interface) engine.Client {
	return engine.ClientOf[*corev1.Service, *corev1.ServiceList](client.CoreV1().Services)
}

// PodGroups reads and writes PodGroups.
func PodGroups(client versioned.Interface) engine.Client {
	return engine.ClientOf[*schedulingv1alpha1.PodGroup, *schedulingv1alpha1.PodGroupList](client.SchedulingV1alpha1().PodGroups)
}

// Remembered sets two things for all kinds: the engine remembers its writes until the cache shows them, and ownersOf
// finds the owners of an object, unless a kind already has a function for that.
func Remembered(kinds []engine.Kind, ownersOf func(metav1.Object) []string) []engine.Kind {
	for i := range kinds {
		kinds[i].Remembers = true
		if kinds[i].OwnersOf == nil {
			kinds[i].OwnersOf = ownersOf
		}
	}
	return kinds
}
