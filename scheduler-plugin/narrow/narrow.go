// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package narrow limits a kube-scheduler to Pods in some namespaces.
package narrow

import (
	"math"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// Informers limits a scheduler to Pods in some namespaces. Call it before any other informer is requested from the
// factory. The informer of Pods, which kube-scheduler creates, is an exception.
//
// Pods of all namespaces take room on nodes. So Pods, and the volumes and devices that Pods use, are still read in all
// namespaces. Pods in other namespaces appear without a scheduler name, so that this scheduler never places these Pods.
// They also appear with the highest priority, so that this scheduler never preempts them. Objects that matter only for
// a Pod to be placed or preempted are read only in the given namespaces.
func Informers(factory informers.SharedInformerFactory, namespaces informing.Namespaces) {
	if len(namespaces) == 0 {
		return
	}
	// The only error is for an informer that was already started.
	_ = factory.Core().V1().Pods().Informer().SetTransform(elsewhere(namespaces))
	read := func(object runtime.Object, of func(client kubernetes.Interface, namespace string) cache.ListerWatcher) {
		factory.InformerFor(object, func(client kubernetes.Interface, _ time.Duration) cache.SharedIndexInformer {
			return namespaces.Informer(object, func(namespace string) cache.ListerWatcher { return of(client, namespace) })
		})
	}
	read(&corev1.Service{}, func(client kubernetes.Interface, namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.CoreV1().Services(namespace), nil)
	})
	read(&corev1.ReplicationController{}, func(client kubernetes.Interface, namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.CoreV1().ReplicationControllers(namespace), nil)
	})
	read(&appsv1.ReplicaSet{}, func(client kubernetes.Interface, namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.AppsV1().ReplicaSets(namespace), nil)
	})
	read(&appsv1.StatefulSet{}, func(client kubernetes.Interface, namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.AppsV1().StatefulSets(namespace), nil)
	})
	read(&policyv1.PodDisruptionBudget{}, func(client kubernetes.Interface, namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.PolicyV1().PodDisruptionBudgets(namespace), nil)
	})
}

// elsewhere returns the function that changes Pods before the informer stores them. It removes managed fields, as
// kube-scheduler does. From ended Pods in other namespaces it also removes all labels and annotations that could make
// them members.
func elsewhere(namespaces informing.Namespaces) cache.TransformFunc {
	return func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok && !slices.Contains(namespaces, pod.Namespace) {
			highest := int32(math.MaxInt32)
			pod.Spec.SchedulerName, pod.Spec.Priority = "", &highest
			if kube.HasEnded(pod) {
				pod.ObjectMeta = metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp}
				pod.Spec.SchedulingGroup = nil
			}
		}
		return informing.DropManagedFields(object)
	}
}
