// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"slices"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/history"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
	"github.com/lockstep-k8s/lockstep/internal/tombstone"
)

// historyLog says on which triggers objects are logged before they are
// overwritten or deleted, and what is masked in them. Log collectors of
// FrameworkController parse the lines; docs/history.md is the contract:
//
//	{klog header}{message}: {trigger}: ObjectSnapshot: {one line of JSON}
type historyLog struct {
	on map[lifecycle.HistoryTrigger]bool
	// masks chooses the environment variables whose values are masked, by name;
	// nil for none.
	masks func(name string) bool
}

// onPodDeletion is the trigger that no decision knows of: only an event tells
// that a Pod is gone.
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

// logHistory logs the objects of a plan, but of a Framework only once that it will be
// deleted: the API server may refuse that for long.
func (p *pass) logHistory(entries []lifecycle.History) {
	deletion := func(entry lifecycle.History) bool { return entry.Trigger == lifecycle.OnFrameworkDeletion }
	if p.memory.deletionLogged {
		entries = slices.DeleteFunc(slices.Clone(entries), deletion)
	}
	p.memory.deletionLogged = p.memory.deletionLogged || slices.ContainsFunc(entries, deletion)
	p.controller.logHistory(entries)
}

// logHistory logs objects, each on a line.
func (c *Controller) logHistory(entries []lifecycle.History) {
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
			c.logSnapshot("syncTaskState: Task will be retried", entry.Trigger, history.Task(c.clock.Now(), entry))
		case lifecycle.OnTaskDeletion:
			c.logSnapshot("syncTaskState: Task will be deleted", entry.Trigger, history.Task(c.clock.Now(), entry))
		}
	}
}

// logFrameworkDeletion logs a Framework that is gone, as it was stored last: its
// status may be compressed. One that does not decode has never run.
func (c *Controller) logFrameworkDeletion(object any) {
	entry, ok := tombstone.Object(object).(*frameworkEntry)
	if !ok || entry.decodeError != nil || !c.history.on[lifecycle.OnFrameworkDeletion] {
		return
	}
	c.logSnapshot("enqueueFrameworkObj: Framework Deleted", lifecycle.OnFrameworkDeletion,
		history.Framework(&entry.Framework, entry.storedStatus))
}

// logPodDeletion logs a Pod that is gone, if it is still known that it belonged
// to a Framework.
func (c *Controller) logPodDeletion(object any) {
	pod, ok := tombstone.Object(object).(*corev1.Pod)
	if !ok || !c.history.on[onPodDeletion] || !c.ownedByFramework(pod) {
		return
	}
	c.logSnapshot("enqueueFrameworkObj: Framework Pod Deleted", onPodDeletion, history.Pod(pod))
}

// ownedByFramework says whether the cache holds the ConfigMap that controls a
// Pod, and the Framework that controls the ConfigMap.
func (c *Controller) ownedByFramework(pod *corev1.Pod) bool {
	configMap, ok := c.controllerOf(pod, c.configMaps, "ConfigMap").(*corev1.ConfigMap)
	return ok && c.controllerOf(configMap, c.frameworks, frameworkv1.FrameworkKind) != nil
}

// controllerOf is the cached controller of an object, nil if there is none.
func (c *Controller) controllerOf(object metav1.Object, owners cache.SharedIndexInformer, kind string) metav1.Object {
	reference := metav1.GetControllerOfNoCopy(object)
	if reference == nil || reference.Kind != kind {
		return nil
	}
	key := cache.NewObjectName(object.GetNamespace(), reference.Name).String()
	cached, _, err := owners.GetIndexer().GetByKey(key)
	owner, ok := cached.(metav1.Object)
	if err != nil || !ok || owner.GetUID() != reference.UID {
		return nil
	}
	return owner
}

// logSnapshot writes one line. The text is data, never a format.
func (c *Controller) logSnapshot(message string, trigger lifecycle.HistoryTrigger, object any) {
	data, err := history.Encode(object, c.history.masks)
	if err != nil {
		klog.ErrorS(err, "Encoding an object snapshot failed", "trigger", trigger)
		return
	}
	klog.Info(message, ": ", string(trigger), ": ObjectSnapshot: ", string(data))
}
