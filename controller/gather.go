// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
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
	m.bury(p.departures.take())
	snapshot := lifecycle.Snapshot{
		Framework:  &entry.Framework,
		Persisted:  m.persisted,
		Status:     m.status,
		Gone:       m.gone,
		Blocked:    m.blocked(),
		Current:    m.current,
		Checked:    m.seen,
		PriorityOf: c.priorityOf(),
		Deleted:    m.deleted,
		Forced:     m.forced,
		Outcomes:   m.outcomes,
		Options:    c.options,
	}
	if m.deletionTimestamp != nil && entry.DeletionTimestamp == nil {
		deleted := entry.Framework // The cache is behind.
		deleted.DeletionTimestamp = m.deletionTimestamp
		snapshot.Framework = &deleted
	}
	if err := p.forgetShown(); err != nil {
		return snapshot, err
	}
	configMap, err := p.configMap()
	if err != nil {
		return snapshot, err
	}
	owner := attemptUID(m.status)
	if configMap != nil {
		snapshot.ConfigMap = &configMap.ObjectMeta
		owner = configMap.UID
	}
	if owner != "" {
		if snapshot.PodGroup, err = p.podGroup(owner); err != nil {
			return snapshot, err
		}
	}
	snapshot.Pods, err = p.pods(entry.UID, owner, attemptUID(m.status))
	if err != nil {
		return snapshot, err
	}
	for _, pod := range snapshot.Pods {
		if pod.DeletionTimestamp != nil {
			p.pace.Terminating.First(pod.UID, p.now())
		}
	}
	snapshot.Terminating = p.pace.Terminating.At()
	p.forgetSightings(snapshot)
	return snapshot, nil
}

// attemptUID is the UID of the ConfigMap of a status, empty if it has none.
func attemptUID(status *frameworkv1.FrameworkStatus) types.UID {
	if status == nil || status.AttemptStatus.ConfigMapUID == nil {
		return ""
	}
	return *status.AttemptStatus.ConfigMapUID
}

// forgetShown forgets objects that the caches show by now, or newer ones of their names:
// strays, and the PodGroup last written.
func (p *pass) forgetShown() error {
	c, m := p.controller, p.memory
	for uid, stray := range m.strays {
		informer := c.pods
		if _, ok := stray.(*corev1.ConfigMap); ok {
			informer = c.configMaps
		}
		object, exists, err := informer.GetIndexer().GetByKey(cache.MetaObjectToName(stray).String())
		if err != nil {
			return err
		}
		if cached, ok := object.(metav1.Object); exists && ok && (cached.GetUID() == uid || !newer(stray, cached)) {
			delete(m.strays, uid)
		}
	}
	if m.podGroup == nil {
		return nil
	}
	store := c.podGroups.GetIndexer()
	// The version is read first: what is read after it is at least as new.
	seen := store.LastStoreSyncResourceVersion()
	object, _, err := store.GetByKey(cache.MetaObjectToName(m.podGroup).String())
	if err != nil {
		return err
	}
	cached, _ := object.(*schedulingv1alpha1.PodGroup)
	if atLeast(seen, m.podGroup.ResourceVersion) || cached != nil && cached.ResourceVersion == m.podGroup.ResourceVersion {
		m.podGroup = nil
	}
	return nil
}

// configMap is the Framework's ConfigMap, nil if there is none: one that was found by a
// live look, or the cached one.
func (p *pass) configMap() (*corev1.ConfigMap, error) {
	for _, object := range p.memory.strays {
		if stray, ok := object.(*corev1.ConfigMap); ok {
			return stray, nil
		}
	}
	key := cache.NewObjectName(p.key.Namespace, frameworkv1.AttemptName(p.key.Name)).String()
	object, exists, err := p.controller.configMaps.GetIndexer().GetByKey(key)
	if err != nil || !exists {
		return nil, err
	}
	cached, ok := object.(*corev1.ConfigMap)
	if !ok || !metav1.IsControlledBy(cached, &p.entry.Framework) {
		return nil, nil
	}
	return cached, nil
}

// pods are the Framework's Pods by name, which carry its UID or have one of the owners:
// those in the cache, and those that were found by a live look.
func (p *pass) pods(uids ...types.UID) (map[string]*corev1.Pod, error) {
	pods := map[string]*corev1.Pod{}
	for i, uid := range uids {
		if uid == "" || slices.Contains(uids[:i], uid) {
			continue
		}
		objects, err := p.controller.pods.GetIndexer().ByIndex(byOwner, ownerKey(p.key.Namespace, uid))
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			if pod, ok := object.(*corev1.Pod); ok {
				pods[pod.Name] = pod
			}
		}
	}
	for _, object := range p.memory.strays {
		if stray, ok := object.(*corev1.Pod); ok {
			pods[stray.Name] = stray
		}
	}
	return pods, nil
}

// newer says whether one object was written after another.
func newer(object, than metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), than.GetResourceVersion())
	return err == nil && order > 0
}

// forgetSightings forgets when objects were seen that are not there any more.
func (p *pass) forgetSightings(snapshot lifecycle.Snapshot) {
	strays := p.memory.strays
	p.pace.Looks.Keep(func(uid types.UID) bool { return strays[uid] != nil })
	if len(p.pace.Terminating.At()) <= len(snapshot.Pods)+pruneSlack {
		return
	}
	there := make(map[types.UID]bool, len(snapshot.Pods))
	for _, pod := range snapshot.Pods {
		there[pod.UID] = true
	}
	p.pace.Terminating.Keep(func(uid types.UID) bool { return there[uid] })
}

// priorityOf looks classes of priority up in the cache. It is nil as long as the cache
// is not filled.
func (c *Controller) priorityOf() func(string) (int32, bool) {
	if !c.priorityClasses.HasSynced() {
		return nil
	}
	return func(name string) (int32, bool) {
		object, exists, err := c.priorityClasses.GetIndexer().GetByKey(name)
		class, ok := object.(*schedulingv1.PriorityClass)
		if err != nil || !exists || !ok {
			return 0, false
		}
		return class.Value, true
	}
}

// podGroup is the attempt's PodGroup, nil if there is none: the one last written as long
// as the cache is older than that, or the cached one.
func (p *pass) podGroup(configMap types.UID) (*schedulingv1alpha1.PodGroup, error) {
	if written := p.memory.podGroup; written != nil && controlled.By(configMap, written) {
		return written, nil
	}
	key := cache.NewObjectName(p.key.Namespace, frameworkv1.PodGroupName(p.key.Name)).String()
	object, exists, err := p.controller.podGroups.GetIndexer().GetByKey(key)
	if err != nil || !exists {
		return nil, err
	}
	group, ok := object.(*schedulingv1alpha1.PodGroup)
	if !ok || !controlled.By(configMap, group) {
		return nil, nil
	}
	return group, nil
}

// atLeast says whether a resource version is as new as another. Versions that
// can't be compared are not.
func atLeast(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order >= 0
}
