// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
)

// view is what the engine knows of a Framework.
type view = engine.View[*frameworkv1.Framework, frameworkv1.FrameworkStatus]

// snapshot collects the known facts about a Framework for a decision. All of it is read only.
func (c *Core) snapshot(view *view) (lifecycle.Snapshot, error) {
	snapshot := lifecycle.Snapshot{
		Framework:  view.Owner,
		PriorityOf: c.priorityOf(),
		Options:    c.options,
	}
	if view.DeletionTimestamp != nil && view.Owner.DeletionTimestamp == nil {
		deleted := *view.Owner // The cache is behind.
		deleted.DeletionTimestamp = view.DeletionTimestamp
		snapshot.Framework = &deleted
	}
	configMap, err := configMapOf(view)
	if err != nil {
		return snapshot, err
	}
	owner := attemptUID(view.Status)
	if configMap != nil {
		snapshot.ConfigMap = &configMap.ObjectMeta
		owner = configMap.UID
	}
	if owner != "" {
		if snapshot.PodGroup, err = podGroupOf(view, owner); err != nil {
			return snapshot, err
		}
	}
	snapshot.Pods, err = engine.Owned[*corev1.Pod](view, lifecycle.KindPod, view.Owner.UID, owner, attemptUID(view.Status))
	snapshot.Known = view.Known
	return snapshot, err
}

// attemptUID returns the UID of the ConfigMap that stands for the current attempt and owns its Pods, as recorded in the
// status; "" if none is recorded.
func attemptUID(status *frameworkv1.FrameworkStatus) types.UID {
	if status == nil || status.AttemptStatus.ConfigMapUID == nil {
		return ""
	}
	return *status.AttemptStatus.ConfigMapUID
}

// configMapOf returns the Framework's ConfigMap; nil if there is none. A ConfigMap that a live read has found takes
// precedence over the cached ConfigMap.
func configMapOf(view *view) (*corev1.ConfigMap, error) {
	if found := engine.Found[*corev1.ConfigMap](view, lifecycle.KindConfigMap); len(found) > 0 {
		return found[0], nil
	}
	cached, err := engine.Named[*corev1.ConfigMap](view, lifecycle.KindConfigMap, frameworkv1.AttemptName(view.Owner.Name))
	if err != nil || cached == nil || !metav1.IsControlledBy(cached, view.Owner) {
		return nil, err
	}
	return cached, nil
}

// podGroupOf returns the attempt's PodGroup, nil if there is none.
func podGroupOf(view *view, configMap types.UID) (*schedulingv1alpha1.PodGroup, error) {
	group, err := engine.Named[*schedulingv1alpha1.PodGroup](view, lifecycle.KindPodGroup, frameworkv1.PodGroupName(view.Owner.Name))
	if err != nil || group == nil || !controlled.By(configMap, group) {
		return nil, err
	}
	return group, nil
}

// priorityOf returns a function that looks PriorityClasses up in the cache; nil until the cache is filled.
func (c *Core) priorityOf() func(string) (int32, bool) {
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
