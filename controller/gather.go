// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// framework is the cached Framework, nil if there is none.
func (c *Controller) framework(key cache.ObjectName) (*frameworkEntry, error) {
	object, exists, err := c.frameworks.GetIndexer().GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	entry, ok := object.(*frameworkEntry)
	if !ok {
		return nil, fmt.Errorf("the cache of Frameworks holds a %T", object)
	}
	return entry, nil
}

// gather puts together what is known of a Framework. Everything in it is read
// only.
func (p *pass) gather() (lifecycle.Snapshot, error) {
	c, entry, m := p.controller, p.entry, p.memory
	snapshot := lifecycle.Snapshot{
		Framework: &entry.Framework,
		Persisted: m.persisted,
		Status:    m.status,
		Deleted:   m.deleted,
		Forced:    m.forced,
		Outcomes:  m.outcomes,
		Options:   c.options,
	}
	configMapKey := cache.NewObjectName(entry.Namespace, frameworkv1.AttemptName(entry.Name)).String()
	object, exists, err := c.configMaps.GetIndexer().GetByKey(configMapKey)
	if err != nil {
		return snapshot, err
	}
	if configMap, ok := object.(*corev1.ConfigMap); exists && ok && metav1.IsControlledBy(configMap, &entry.Framework) {
		snapshot.ConfigMap = &configMap.ObjectMeta
	}
	if snapshot.ConfigMap == nil {
		return snapshot, nil
	}
	podGroupKey := cache.NewObjectName(entry.Namespace, frameworkv1.PodGroupName(entry.Name)).String()
	if snapshot.PodGroup, err = c.podGroup(podGroupKey, snapshot.ConfigMap.UID, m); err != nil {
		return snapshot, err
	}
	snapshot.Pods, err = c.podsOf(snapshot.ConfigMap.UID)
	return snapshot, err
}

// podsOf are the cached Pods of an attempt, by name.
func (c *Controller) podsOf(configMap types.UID) (map[string]*corev1.Pod, error) {
	objects, err := c.pods.GetIndexer().ByIndex(byController, string(configMap))
	if err != nil {
		return nil, err
	}
	pods := make(map[string]*corev1.Pod, len(objects))
	for _, object := range objects {
		if pod, ok := object.(*corev1.Pod); ok {
			pods[pod.Name] = pod
		}
	}
	return pods, nil
}

// podGroup is the attempt's PodGroup: the cached one, or the one last written as
// long as the cache is older than that.
func (c *Controller) podGroup(key string, configMap types.UID, m *memory) (*schedulingv1alpha1.PodGroup, error) {
	store := c.podGroups.GetIndexer()
	// The version is read first: what is read after it is at least as new.
	seen := store.LastStoreSyncResourceVersion()
	object, exists, err := store.GetByKey(key)
	if err != nil {
		return nil, err
	}
	group, ok := object.(*schedulingv1alpha1.PodGroup)
	if !exists || !ok || !controlledBy(group, configMap) {
		group = nil
	}
	if m.podGroup == nil {
		return group, nil
	}
	if !controlledBy(m.podGroup, configMap) || atLeast(seen, m.podGroup.ResourceVersion) ||
		group != nil && group.ResourceVersion == m.podGroup.ResourceVersion {
		m.podGroup = nil
		return group, nil
	}
	return m.podGroup, nil
}

// atLeast says whether a resource version is as new as another. Versions that
// can't be compared are not.
func atLeast(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order >= 0
}

func controlledBy(object metav1.Object, uid types.UID) bool {
	owner := metav1.GetControllerOfNoCopy(object)
	return owner != nil && owner.UID == uid
}
