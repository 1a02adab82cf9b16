// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// historyLog says on which triggers objects are logged before they are
// overwritten or deleted. Log collectors of FrameworkController parse the lines;
// docs/history.md is the contract:
//
//	{klog header}{message}: {trigger}: ObjectSnapshot: {one line of JSON}
type historyLog map[lifecycle.HistoryTrigger]bool

// onPodDeletion is the trigger that no decision knows of: only an event tells
// that a Pod is gone.
const onPodDeletion lifecycle.HistoryTrigger = "OnPodDeletion"

func newHistoryLog(config configv1alpha1.LogObjectSnapshot) historyLog {
	wanted := func(setting *bool) bool { return ptr.Deref(setting, true) }
	return historyLog{
		lifecycle.OnFrameworkRetry:    wanted(config.Framework.OnFrameworkRetry),
		lifecycle.OnFrameworkDeletion: wanted(config.Framework.OnFrameworkDeletion),
		lifecycle.OnTaskRetry:         wanted(config.Task.OnTaskRetry),
		lifecycle.OnTaskDeletion:      wanted(config.Task.OnTaskDeletion),
		onPodDeletion:                 wanted(config.Pod.OnPodDeletion),
	}
}

// logHistory logs the objects of a plan, each on a line.
func (c *Controller) logHistory(history []lifecycle.History) {
	for _, entry := range history {
		if !c.history[entry.Trigger] {
			continue
		}
		switch entry.Trigger {
		case lifecycle.OnFrameworkRetry:
			logSnapshot("syncFrameworkState: Framework will be retried", entry.Trigger, newFrameworkSnapshot(entry.Framework, entry.Framework.Status))
		case lifecycle.OnFrameworkDeletion:
			logSnapshot("syncFrameworkState: Framework will be deleted", entry.Trigger, newFrameworkSnapshot(entry.Framework, entry.Framework.Status))
		case lifecycle.OnTaskRetry:
			logSnapshot("syncTaskState: Task will be retried", entry.Trigger, newTaskSnapshot(c.clock.Now(), entry))
		case lifecycle.OnTaskDeletion:
			logSnapshot("syncTaskState: Task will be deleted", entry.Trigger, newTaskSnapshot(c.clock.Now(), entry))
		}
	}
}

// logFrameworkDeletion logs a Framework that is gone, as it was stored last: its
// status may be compressed. One that does not decode has never run.
func (c *Controller) logFrameworkDeletion(object any) {
	entry, ok := lastState(object).(*frameworkEntry)
	if !ok || entry.decodeError != nil || !c.history[lifecycle.OnFrameworkDeletion] {
		return
	}
	logSnapshot("enqueueFrameworkObj: Framework Deleted", lifecycle.OnFrameworkDeletion,
		newFrameworkSnapshot(&entry.Framework, entry.storedStatus))
}

// logPodDeletion logs a Pod that is gone, if it is still known that it belonged
// to a Framework.
func (c *Controller) logPodDeletion(object any) {
	pod, ok := lastState(object).(*corev1.Pod)
	if !ok || !c.history[onPodDeletion] || !c.ownedByFramework(pod) {
		return
	}
	snapshot := *pod
	snapshot.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	logSnapshot("enqueueFrameworkObj: Framework Pod Deleted", onPodDeletion, &snapshot)
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
func logSnapshot(message string, trigger lifecycle.HistoryTrigger, object any) {
	data, err := json.Marshal(object)
	if err != nil {
		klog.ErrorS(err, "Encoding an object snapshot failed", "trigger", trigger)
		return
	}
	klog.Info(message, ": ", string(trigger), ": ObjectSnapshot: ", string(data))
}

// frameworkSnapshot is a Framework as the API server shows it. The status is a
// *frameworkv1.FrameworkStatus, or JSON as it is stored.
type frameworkSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              *frameworkv1.FrameworkSpec `json:"spec"`
	Status            any                        `json:"status"`
}

func newFrameworkSnapshot(framework *frameworkv1.Framework, status any) *frameworkSnapshot {
	return &frameworkSnapshot{
		TypeMeta:   metav1.TypeMeta{APIVersion: frameworkv1.SchemeGroupVersion.String(), Kind: frameworkv1.FrameworkKind},
		ObjectMeta: framework.ObjectMeta,
		Spec:       &framework.Spec,
		Status:     status,
	}
}

// taskSnapshot is a task in the shape of an object of its own.
type taskSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              *frameworkv1.TaskSpec   `json:"spec"`
	Status            *frameworkv1.TaskStatus `json:"status"`
}

func newTaskSnapshot(now time.Time, entry lifecycle.History) *taskSnapshot {
	framework, role, task := entry.Framework, entry.TaskRole, entry.Task
	attempt := &framework.Status.AttemptStatus
	index := strconv.Itoa(int(task.Index))
	snapshot := &taskSnapshot{
		TypeMeta: metav1.TypeMeta{APIVersion: frameworkv1.SchemeGroupVersion.String(), Kind: "Task"},
		ObjectMeta: metav1.ObjectMeta{
			Name:              task.AttemptStatus.PodName,
			Namespace:         framework.Namespace,
			UID:               task.InstanceUID,
			ResourceVersion:   framework.ResourceVersion,
			Generation:        framework.Generation,
			CreationTimestamp: task.StartTime,
			Labels: map[string]string{
				frameworkv1.KeyFrameworkName: framework.Name,
				frameworkv1.KeyTaskRoleName:  role.Name,
				frameworkv1.KeyTaskIndex:     index,
			},
			Annotations: map[string]string{
				frameworkv1.KeyFrameworkNamespace:          framework.Namespace,
				frameworkv1.KeyFrameworkName:               framework.Name,
				frameworkv1.KeyTaskRoleName:                role.Name,
				frameworkv1.KeyTaskIndex:                   index,
				frameworkv1.KeyConfigMapName:               attempt.ConfigMapName,
				frameworkv1.KeyFrameworkUID:                string(framework.UID),
				frameworkv1.KeyFrameworkAttemptID:          strconv.Itoa(int(attempt.ID)),
				frameworkv1.KeyFrameworkAttemptInstanceUID: string(ptr.Deref(attempt.InstanceUID, "")),
				frameworkv1.KeyConfigMapUID:                string(ptr.Deref(attempt.ConfigMapUID, "")),
				frameworkv1.KeyTaskRoleUID:                 string(role.InstanceUID),
			},
		},
		Status: task,
	}
	for i := range framework.Spec.TaskRoles {
		if framework.Spec.TaskRoles[i].Name == role.Name {
			snapshot.Spec = &framework.Spec.TaskRoles[i].Task
		}
	}
	if entry.Trigger == lifecycle.OnTaskDeletion {
		deleted := metav1.NewTime(now)
		snapshot.DeletionTimestamp = &deleted
		snapshot.DeletionGracePeriodSeconds = ptr.To[int64](0)
	}
	return snapshot
}
