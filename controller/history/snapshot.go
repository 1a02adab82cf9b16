// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// FrameworkSnapshot is a Framework in the form in which the API server returns it. The status is a
// *frameworkv1.FrameworkStatus, or the stored JSON.
type FrameworkSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              *frameworkv1.FrameworkSpec `json:"spec"`
	Status            any                        `json:"status"`
}

// Framework returns the snapshot of a Framework with a status, which is a *frameworkv1.FrameworkStatus or a
// json.RawMessage. The snapshot shares memory with the Framework.
func Framework(framework *frameworkv1.Framework, status any) *FrameworkSnapshot {
	return &FrameworkSnapshot{
		TypeMeta:   metav1.TypeMeta{APIVersion: frameworkv1.SchemeGroupVersion.String(), Kind: frameworkv1.FrameworkKind},
		ObjectMeta: framework.ObjectMeta,
		Spec:       &framework.Spec,
		Status:     status,
	}
}

// Pod returns the snapshot of a Pod. It shares the Pod's memory.
func Pod(pod *corev1.Pod) *corev1.Pod {
	snapshot := *pod
	snapshot.ManagedFields = nil
	snapshot.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	return &snapshot
}

// TaskSnapshot is a task in the shape of an object of its own.
type TaskSnapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              *frameworkv1.TaskSpec   `json:"spec"`
	Status            *frameworkv1.TaskStatus `json:"status"`
}

// AnnotationTemplateIn is set on a task that is logged without its Pod template, because an earlier line has the same
// template. Its value is the UID of the task in that line.
const AnnotationTemplateIn = "lockstep.dev/pod-template-in"

// maxTemplates limits how many bytes of templates the lines of one plan contain. Beyond the limit, only the first line
// of each role has its template.
const maxTemplates = 1 << 20

// Templates records which Pod templates have been logged already, in the history lines that one plan causes. The zero
// value is empty.
type Templates struct {
	written int
	// `in` has, for each role, the UID of the first task whose line contains the role's template.
	in map[string]types.UID
}

// Thin removes the Pod template from a task's snapshot if an earlier line has the same template and maxTemplates is
// exceeded. Ten thousand tasks of one role may be retried at once, and each would log the template.
func (t *Templates) Thin(task *TaskSnapshot) {
	if task.Spec == nil {
		return
	}
	role, size := task.Labels[frameworkv1.KeyTaskRoleName], len(task.Spec.Pod.Raw)
	in, seen := t.in[role]
	if seen && t.written+size > maxTemplates {
		spec := *task.Spec
		spec.Pod = runtime.RawExtension{Raw: []byte("null")} // the field stays
		task.Spec = &spec
		task.Annotations[AnnotationTemplateIn] = string(in)
		return
	}
	if t.in == nil {
		t.in = make(map[string]types.UID)
	}
	if !seen {
		t.in[role] = task.UID
	}
	t.written += size
}

// Task returns the snapshot of the task in a history entry. now becomes the time of the deletion, if the task is logged
// because it is deleted. The snapshot shares memory with the entry.
func Task(now time.Time, entry lifecycle.History) *TaskSnapshot {
	framework, role, task := entry.Framework, entry.TaskRole, entry.Task
	attempt := &framework.Status.AttemptStatus
	index := strconv.Itoa(int(task.Index))
	snapshot := &TaskSnapshot{
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
