// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kept are Pods, each with the group to which it belonged when it was put in. A group is any
// comparable value. The zero value has none. It is not safe for concurrent use.
//
// Invariant: byGroup holds the Pods of all, and no group that is empty.
type kept struct {
	all     map[types.UID]keptPod
	byGroup map[any]map[types.UID]*corev1.Pod
}

type keptPod struct {
	pod   *corev1.Pod
	group any
}

// put puts a Pod in, or a later state of it, and says whether it was in before.
func (k *kept) put(pod *corev1.Pod, group any) (known bool) {
	known = k.remove(pod.UID)
	if k.all == nil {
		k.all, k.byGroup = make(map[types.UID]keptPod), make(map[any]map[types.UID]*corev1.Pod)
	}
	k.all[pod.UID] = keptPod{pod, group}
	if k.byGroup[group] == nil {
		k.byGroup[group] = make(map[types.UID]*corev1.Pod)
	}
	k.byGroup[group][pod.UID] = pod
	return known
}

// remove takes a Pod out, and says whether it was in.
func (k *kept) remove(uid types.UID) (known bool) {
	was, known := k.all[uid]
	if !known {
		return false
	}
	delete(k.all, uid)
	if delete(k.byGroup[was.group], uid); len(k.byGroup[was.group]) == 0 {
		delete(k.byGroup, was.group)
	}
	return true
}

// pods are all Pods, in no order.
func (k *kept) pods() []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(k.all))
	for _, is := range k.all {
		pods = append(pods, is.pod)
	}
	return pods
}

// of are the Pods of a group, in no order.
func (k *kept) of(group any) []*corev1.Pod {
	return slices.Collect(maps.Values(k.byGroup[group]))
}
