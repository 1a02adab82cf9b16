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
	pods, err := c.addPodHandler(c.pods)
	if err != nil {
		return err
	}
	for _, implicit := range c.implicit {
		if _, err := c.addPodHandler(implicit); err != nil {
			return err
		}
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

// addPodHandler maps events of Pods to the keys of the groups that they may be members of.
func (c *Controller) addPodHandler(pods cache.SharedIndexInformer) (cache.ResourceEventHandlerRegistration, error) {
	if err := pods.AddIndexers(cache.Indexers{byGroup: indexByGroup}); err != nil {
		return nil, fmt.Errorf("indexing Pods by group: %w", err)
	}
	if err := c.unread.Follow(pods); err != nil {
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	handled, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
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
		return nil, fmt.Errorf("watching Pods: %w", err)
	}
	return handled, nil
}

func (c *Controller) onPod(obj any) {
	pod, ok := tombstone.Object(obj).(*corev1.Pod)
	if !ok {
		return
	}
	for _, name := range podgroup.GroupsOf(pod) {
		c.loop.AddAfter(fair.Key{ObjectName: cache.NewObjectName(pod.Namespace, name)}, window)
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
