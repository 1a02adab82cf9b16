// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/informing"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// byGroup is the index of Pods by the keys of the groups that they may be members of.
const byGroup = "group"

// newPodInformer watches the Pods that name a group, and keeps of each what a sync
// reads.
func newPodInformer(client kubernetes.Interface, namespaces informing.Namespaces) (cache.SharedIndexInformer, error) {
	pods := namespaces.Informer(&corev1.Pod{}, func(namespace string) cache.ListerWatcher {
		return informing.ListWatch(client, client.CoreV1().Pods(namespace), func(options *metav1.ListOptions) {
			options.LabelSelector = schedulingv1alpha1.LabelPodGroup
			informing.WantCurrent(options) // else the phase would follow an old state
		})
	})
	return pods, pods.SetTransform(strip)
}

// strip keeps of a Pod its identity and what podgroup.IsMember and podgroup.Count
// read.
func strip(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil // A tombstone: its Pod was stripped when it came.
	}
	labels := make(map[string]string, 2)
	for _, label := range []string{schedulingv1alpha1.LabelPodGroup, schedulingv1alpha1.LabelRole} {
		if value, ok := pod.Labels[label]; ok {
			labels[label] = value
		}
	}
	var owners []metav1.OwnerReference
	if controller := metav1.GetControllerOf(pod); controller != nil {
		owners = []metav1.OwnerReference{*controller}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         pod.Namespace,
			Name:              pod.Name,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            labels,
			OwnerReferences:   owners,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

func indexByGroup(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("indexing a Pod: got a %T", obj)
	}
	var keys []string
	for _, name := range podgroup.GroupsOf(pod) {
		keys = append(keys, cache.NewObjectName(pod.Namespace, name).String())
	}
	return keys, nil
}

// sameCount reports whether a Pod counts the same before and after an update.
func sameCount(before, after *corev1.Pod) bool {
	return before.UID == after.UID &&
		controllerOf(before) == controllerOf(after) &&
		before.Status.Phase == after.Status.Phase &&
		before.Spec.NodeName == after.Spec.NodeName &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		maps.Equal(before.Labels, after.Labels)
}

// controllerOf returns the UID of a Pod's controller, empty if it has none.
func controllerOf(pod *corev1.Pod) types.UID {
	if controller := metav1.GetControllerOfNoCopy(pod); controller != nil {
		return controller.UID
	}
	return ""
}

// membersOf returns the members of a group as the informer sees them now.
func (c *Controller) membersOf(group *schedulingv1alpha1.PodGroup) ([]*corev1.Pod, error) {
	informers := []cache.SharedIndexInformer{c.pods}
	if len(group.Spec.MemberLabels) > 0 {
		informers = c.implicit
	}
	var pods []*corev1.Pod
	for _, informer := range informers {
		objs, err := informer.GetIndexer().ByIndex(byGroup, cache.MetaObjectToName(group).String())
		if err != nil {
			return nil, fmt.Errorf("listing the members: %w", err)
		}
		pods = slices.Grow(pods, len(objs))
		for _, obj := range objs {
			if pod, ok := obj.(*corev1.Pod); ok && podgroup.IsMember(group, pod) {
				pods = append(pods, pod)
			}
		}
	}
	return pods, nil
}
