// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package frameworks

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/history"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// historyLog says when objects are logged, before they are overwritten or deleted, and which values are masked.
// Collectors of FrameworkController's log parse the lines; docs/history.md specifies them:
//
//	{klog header}{message}: {trigger}: ObjectSnapshot: {one line of JSON}
type historyLog struct {
	on map[lifecycle.HistoryTrigger]bool
	// masks chooses the environment variables with masked values, by name; nil for none.
	masks func(name string) bool
}

// onPodDeletion is the only trigger that comes from an event instead of a decision: only an event shows that a Pod is
// gone.
const onPodDeletion lifecycle.HistoryTrigger = "OnPodDeletion"

func newHistoryLog(config configv1alpha1.LogObjectSnapshot) historyLog {
	wanted := func(setting *bool) bool { return ptr.Deref(setting, true) }
	log := historyLog{on: map[lifecycle.HistoryTrigger]bool{
		lifecycle.OnFrameworkRetry:    wanted(config.Framework.OnFrameworkRetry),
		lifecycle.OnFrameworkDeletion: wanted(config.Framework.OnFrameworkDeletion),
		lifecycle.OnTaskRetry:         wanted(config.Task.OnTaskRetry),
		lifecycle.OnTaskDeletion:      wanted(config.Task.OnTaskDeletion),
		onPodDeletion:                 wanted(config.Pod.OnPodDeletion),
	}}
	if ptr.Deref(config.MaskEnv.Policy, configv1alpha1.MaskEnvByName) != configv1alpha1.MaskEnvNone {
		log.masks = config.MaskEnv.Masks
	}
	return log
}

// addHistoryHandler adds a handler that logs Pods which are gone although no deletion was seen, in the state that the
// cache had last.
func (c *Core) addHistoryHandler() error {
	if _, err := c.pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(old, new any) {
			if before := old.(*corev1.Pod); before.UID != new.(*corev1.Pod).UID { // It was deleted and created.
				c.logPodDeletion(before)
			}
		},
		DeleteFunc: func(object any) {
			missed, ok := object.(cache.DeletedFinalStateUnknown)
			if pod, isPod := missed.Obj.(*corev1.Pod); ok && isPod {
				c.logPodDeletion(pod)
			}
		},
	}); err != nil {
		return fmt.Errorf("watching Pods for the history: %w", err)
	}
	return nil
}

// logHistory logs the objects of a plan. A Framework's own deletion is logged only by the first plan that requests it:
// while the API server refuses the deletion, each plan requests it again.
func (d *decider) logHistory(entries []lifecycle.History, now time.Time) {
	deletion := func(entry lifecycle.History) bool { return entry.Trigger == lifecycle.OnFrameworkDeletion }
	if d.deletionLogged {
		entries = slices.DeleteFunc(slices.Clone(entries), deletion)
	}
	d.deletionLogged = d.deletionLogged || slices.ContainsFunc(entries, deletion)
	d.core.logHistory(entries, now)
}

// logHistory logs the objects of a plan, each on a line.
func (c *Core) logHistory(entries []lifecycle.History, now time.Time) {
	var templates history.Templates
	task := func(entry lifecycle.History) *history.TaskSnapshot {
		snapshot := history.Task(now, entry)
		templates.Thin(snapshot)
		return snapshot
	}
	for _, entry := range entries {
		if !c.history.on[entry.Trigger] {
			continue
		}
		switch entry.Trigger {
		case lifecycle.OnFrameworkRetry:
			c.logSnapshot("syncFrameworkState: Framework will be retried", entry.Trigger, history.Framework(entry.Framework, entry.Framework.Status))
		case lifecycle.OnFrameworkDeletion:
			c.logSnapshot("syncFrameworkState: Framework will be deleted", entry.Trigger, history.Framework(entry.Framework, entry.Framework.Status))
		case lifecycle.OnTaskRetry:
			c.logSnapshot("syncTaskState: Task will be retried", entry.Trigger, task(entry))
		case lifecycle.OnTaskDeletion:
			c.logSnapshot("syncTaskState: Task will be deleted", entry.Trigger, task(entry))
		}
	}
}

// logFrameworkDeletion logs a deleted Framework with its last stored status, which may be compressed.
func (c *Core) logFrameworkDeletion(framework *frameworkv1.Framework, stored json.RawMessage) {
	if c.history.on[lifecycle.OnFrameworkDeletion] {
		c.logSnapshot("enqueueFrameworkObj: Framework Deleted", lifecycle.OnFrameworkDeletion, history.Framework(framework, stored))
	}
}

// logPodDeletion logs a Pod that is gone, if its Framework is still known.
func (c *Core) logPodDeletion(pod *corev1.Pod) {
	if c.history.on[onPodDeletion] && c.ownedByFramework(pod) {
		c.logSnapshot("enqueueFrameworkObj: Framework Pod Deleted", onPodDeletion, history.Pod(pod))
	}
}

// ownedByFramework reports whether the cache holds the ConfigMap that controls a Pod, and the Framework that controls
// the ConfigMap.
func (c *Core) ownedByFramework(pod *corev1.Pod) bool {
	configMap, ok := c.controllerOf(pod, c.configMaps, "ConfigMap").(*corev1.ConfigMap)
	return ok && c.controllerOf(configMap, c.frameworks, frameworkv1.FrameworkKind) != nil
}

// controllerOf returns the cached controller of an object, nil if there is none.
func (c *Core) controllerOf(object metav1.Object, owners cache.SharedIndexInformer, kind string) metav1.Object {
	reference := metav1.GetControllerOfNoCopy(object)
	if reference == nil || reference.Kind != kind {
		return nil
	}
	key := cache.NewObjectName(object.GetNamespace(), reference.Name).String()
	cached, _, err := owners.GetIndexer().GetByKey(key)
	if err != nil || cached == nil {
		return nil
	}
	owner, err := meta.Accessor(cached)
	if err != nil || owner.GetUID() != reference.UID {
		return nil
	}
	return owner
}

// logSnapshot writes one line. The text is data, never a format.
func (c *Core) logSnapshot(message string, trigger lifecycle.HistoryTrigger, object any) {
	data, err := history.Encode(object, c.history.masks)
	if err != nil {
		klog.ErrorS(err, "Encoding an object snapshot failed", "trigger", trigger)
		return
	}
	klog.Info(message, ": ", string(trigger), ": ObjectSnapshot: ", string(data))
}
