// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"encoding/json"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// historyLog says which objects are logged before they are overwritten or
// deleted. Log collectors of FrameworkController parse the lines:
//
//	{message}: {trigger}: ObjectSnapshot: {one line of JSON}
type historyLog struct {
	triggers map[lifecycle.HistoryTrigger]bool
	pods     bool
}

func newHistoryLog(config configv1alpha1.LogObjectSnapshot) historyLog {
	wanted := func(setting *bool) bool { return ptr.Deref(setting, true) }
	return historyLog{
		triggers: map[lifecycle.HistoryTrigger]bool{
			lifecycle.OnFrameworkRetry:    wanted(config.Framework.OnFrameworkRetry),
			lifecycle.OnFrameworkDeletion: wanted(config.Framework.OnFrameworkDeletion),
			lifecycle.OnTaskRetry:         wanted(config.Task.OnTaskRetry),
			lifecycle.OnTaskDeletion:      wanted(config.Task.OnTaskDeletion),
		},
		pods: wanted(config.Pod.OnPodDeletion),
	}
}

// logHistory logs the objects of a plan, each on a line.
func (c *Controller) logHistory(history []lifecycle.History) {
	for _, entry := range history {
		if !c.history.triggers[entry.Trigger] {
			continue
		}
		message, object := "syncFrameworkState: Framework will be retried", any(frameworkSnapshot(entry.Framework))
		switch entry.Trigger {
		case lifecycle.OnFrameworkDeletion:
			message = "syncFrameworkState: Framework will be deleted"
		case lifecycle.OnTaskRetry:
			message, object = "syncTaskState: Task will be retried", newTaskSnapshot(c.clock.Now(), entry)
		case lifecycle.OnTaskDeletion:
			message, object = "syncTaskState: Task will be deleted", newTaskSnapshot(c.clock.Now(), entry)
		}
		logSnapshot(message, entry.Trigger, object)
	}
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

func frameworkSnapshot(framework *frameworkv1.Framework) *frameworkv1.Framework {
	snapshot := *framework
	snapshot.APIVersion = frameworkv1.SchemeGroupVersion.String()
	snapshot.Kind = frameworkv1.FrameworkKind
	return &snapshot
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
