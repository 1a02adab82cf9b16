// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// byGroup is the index of Pods by the key of their group.
const byGroup = "group"

// newPodInformer watches the members of all groups, and keeps of each what a
// sync reads.
func newPodInformer(client kubernetes.Interface) cache.SharedIndexInformer {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.LabelSelector = schedulingv1alpha1.LabelPodGroup
		}),
		informers.WithTransform(strip),
	)
	return factory.Core().V1().Pods().Informer()
}

// strip keeps of a Pod its identity and what podgroup.Count reads.
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
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         pod.Namespace,
			Name:              pod.Name,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			DeletionTimestamp: pod.DeletionTimestamp,
			Labels:            labels,
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}, nil
}

// groupOf is the group that a Pod belongs to; false if it belongs to none.
func groupOf(pod *corev1.Pod) (cache.ObjectName, bool) {
	name := pod.Labels[schedulingv1alpha1.LabelPodGroup]
	return cache.ObjectName{Namespace: pod.Namespace, Name: name}, name != ""
}

func indexByGroup(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("indexing a Pod: got a %T", obj)
	}
	if group, ok := groupOf(pod); ok {
		return []string{group.String()}, nil
	}
	return nil, nil
}

// sameCount says whether a Pod counts the same before and after an update.
func sameCount(before, after *corev1.Pod) bool {
	return before.UID == after.UID &&
		before.Status.Phase == after.Status.Phase &&
		before.Spec.NodeName == after.Spec.NodeName &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		before.Labels[schedulingv1alpha1.LabelPodGroup] == after.Labels[schedulingv1alpha1.LabelPodGroup] &&
		before.Labels[schedulingv1alpha1.LabelRole] == after.Labels[schedulingv1alpha1.LabelRole]
}

// membersOf are the Pods of a group as the informer sees them now.
func (c *Controller) membersOf(group cache.ObjectName) ([]*corev1.Pod, error) {
	objs, err := c.pods.GetIndexer().ByIndex(byGroup, group.String())
	if err != nil {
		return nil, fmt.Errorf("listing the members: %w", err)
	}
	pods := make([]*corev1.Pod, 0, len(objs))
	for _, obj := range objs {
		if pod, ok := obj.(*corev1.Pod); ok {
			pods = append(pods, pod)
		}
	}
	return pods, nil
}
