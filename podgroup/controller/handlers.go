// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/fair"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// addHandlers maps events of groups, and of Pods that name them, to the groups' keys.
func (c *Controller) addHandlers(groups cache.SharedIndexInformer) error {
	if err := c.pods.AddIndexers(cache.Indexers{byGroup: indexByGroup}); err != nil {
		return fmt.Errorf("indexing Pods by group: %w", err)
	}
	if err := c.unread.Follow(c.pods); err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	pods, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.onPod(obj) },
		DeleteFunc: func(obj any) { c.onPod(obj) },
		UpdateFunc: func(before, after any) {
			was, ok1 := before.(*corev1.Pod)
			is, ok2 := after.(*corev1.Pod)
			if ok1 && ok2 && sameCount(was, is) {
				return
			}
			c.onPod(before)
			c.onPod(after)
		},
	})
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	podGroups, err := groups.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { c.onGroup(nil, obj) },
		UpdateFunc: func(before, after any) { c.onGroup(before, after) },
		// A group that is gone has nothing to be kept.
	})
	if err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	c.synced = []cache.InformerSynced{pods.HasSynced, podGroups.HasSynced}
	return nil
}

func (c *Controller) onPod(obj any) {
	pod, ok := tombstone.Object(obj).(*corev1.Pod)
	if !ok {
		return
	}
	if group, ok := podgroup.GroupOf(pod); ok {
		c.loop.AddAfter(fair.Key{ObjectName: cache.NamespacedNameAsObjectName(group)}, window)
	}
}

// onGroup syncs a new spec at once. A new status is mostly the echo of an own
// write, and must not shorten the window; a new group is about to get members.
func (c *Controller) onGroup(before, after any) {
	is, ok := after.(*schedulingv1alpha1.PodGroup)
	if !ok {
		return
	}
	key := fair.Key{ObjectName: cache.MetaObjectToName(is)}
	if was, ok := before.(*schedulingv1alpha1.PodGroup); ok && was.UID == is.UID && was.Generation != is.Generation {
		c.loop.Add(key)
		return
	}
	c.loop.AddAfter(key, window)
}
