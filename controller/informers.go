// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// byController indexes objects by the UID of their controller.
const byController = "controllerUID"

// newCoreInformers makes the informers of ConfigMaps and Pods of Frameworks.
// Others are never sent by the API server.
func newCoreInformers(client kubernetes.Interface, wholePods bool) (informers.SharedInformerFactory, cache.SharedIndexInformer, cache.SharedIndexInformer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.LabelSelector = frameworkv1.KeyFrameworkName
			wantCurrent(options)
		}))
	configMaps := factory.Core().V1().ConfigMaps().Informer()
	if err := configMaps.SetTransform(dropManagedFields); err != nil {
		return nil, nil, nil, err
	}
	pods := factory.Core().V1().Pods().Informer()
	transform := dropUnreadOfPod
	if wholePods {
		transform = dropManagedFields
	}
	if err := pods.SetTransform(transform); err != nil {
		return nil, nil, nil, err
	}
	if err := pods.AddIndexers(cache.Indexers{byController: indexByController}); err != nil {
		return nil, nil, nil, err
	}
	return factory, configMaps, pods, nil
}

// wantCurrent makes a first list as new as everything that was written before it.
// Informers that can't get it as a stream content themselves with any state that
// the API server has at hand. A controller that begins, knowing nothing, with a
// state from before its predecessor's last writes would do again what was done.
func wantCurrent(options *metav1.ListOptions) {
	if options.ResourceVersion == "0" {
		options.ResourceVersion = ""
	}
}

func indexByController(object any) ([]string, error) {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOfNoCopy(accessor); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

func dropManagedFields(object any) (any, error) {
	if accessor, err := meta.Accessor(object); err == nil {
		accessor.SetManagedFields(nil)
	}
	return object, nil
}

// dropUnreadOfPod keeps of a Pod what decisions read.
func dropUnreadOfPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name:                       pod.Name,
			Namespace:                  pod.Namespace,
			UID:                        pod.UID,
			ResourceVersion:            pod.ResourceVersion,
			Labels:                     pod.Labels,
			OwnerReferences:            pod.OwnerReferences,
			CreationTimestamp:          pod.CreationTimestamp,
			DeletionTimestamp:          pod.DeletionTimestamp,
			DeletionGracePeriodSeconds: pod.DeletionGracePeriodSeconds,
		},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{
			Phase:                 pod.Status.Phase,
			Reason:                pod.Status.Reason,
			Message:               pod.Status.Message,
			PodIP:                 pod.Status.PodIP,
			HostIP:                pod.Status.HostIP,
			InitContainerStatuses: containerEnds(pod.Status.InitContainerStatuses),
			ContainerStatuses:     containerEnds(pod.Status.ContainerStatuses),
		},
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget {
			kept.Status.Conditions = append(kept.Status.Conditions, condition)
		}
	}
	return kept, nil
}

func containerEnds(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var ends []corev1.ContainerStatus
	for _, status := range statuses {
		ends = append(ends, corev1.ContainerStatus{
			Name:  status.Name,
			State: corev1.ContainerState{Terminated: status.State.Terminated},
		})
	}
	return ends
}
