// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package narrow has a kube-scheduler serve Pods in some namespaces alone.
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

// Informers has a scheduler serve Pods in some namespaces alone. It comes before anybody else asks
// the factory for an informer, but for that of Pods, which kube-scheduler has made.
//
// What takes room on a node has to be known wherever it is, so Pods of all namespaces are still
// read, and so are the volumes and devices that they use. Those elsewhere are shown as if they named
// no scheduler, so that they are never placed here, and as if nobody outranked them, so that they are
// never preempted. What is only looked at for a Pod that is to be placed, or for a victim, is read in
// these namespaces alone.
func Informers(factory informers.SharedInformerFactory, namespaces informing.Namespaces) {
	if len(namespaces) == 0 {
		return
	}
	// It fails only for an informer that was started.
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

// elsewhere is the transform of the informer of Pods. It drops their managed fields, as
// kube-scheduler's own does, and what Pods elsewhere that have ended could be members by.
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
