// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package adapter

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/client/clientset/versioned"
	typedschedulingv1alpha1 "github.com/lockstep-k8s/lockstep/client/clientset/versioned/typed/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
)

// Pods reads and writes Pods.
func Pods(client kubernetes.Interface) engine.Client {
	return engine.ClientOf[*corev1.Pod, *corev1.PodList](func(namespace string) typedcorev1.PodInterface {
		return client.CoreV1().Pods(namespace)
	})
}

// ConfigMaps reads and writes ConfigMaps.
func ConfigMaps(client kubernetes.Interface) engine.Client {
	return engine.ClientOf[*corev1.ConfigMap, *corev1.ConfigMapList](func(namespace string) typedcorev1.ConfigMapInterface {
		return client.CoreV1().ConfigMaps(namespace)
	})
}

// Services reads and writes Services.
func Services(client kubernetes.Interface) engine.Client {
	return engine.ClientOf[*corev1.Service, *corev1.ServiceList](func(namespace string) typedcorev1.ServiceInterface {
		return client.CoreV1().Services(namespace)
	})
}

// PodGroups reads and writes PodGroups.
func PodGroups(client versioned.Interface) engine.Client {
	return engine.ClientOf[*schedulingv1alpha1.PodGroup, *schedulingv1alpha1.PodGroupList](func(namespace string) typedschedulingv1alpha1.PodGroupInterface {
		return client.SchedulingV1alpha1().PodGroups(namespace)
	})
}

// Remembered sets two things for all kinds: the engine remembers what it wrote until the cache shows it, and ownersOf finds
// the owners of an object, unless a kind already has a function for that.
func Remembered(kinds []engine.Kind, ownersOf func(metav1.Object) []string) []engine.Kind {
	for i := range kinds {
		kinds[i].Remembers = true
		if kinds[i].OwnersOf == nil {
			kinds[i].OwnersOf = ownersOf
		}
	}
	return kinds
}
