// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// A ConfigMap or a Pod is created after the status that waits for the object was persisted, and the UID is persisted
// later. A controller that dies in between leaves an object with an unrecorded UID, and so does a creation with a
// lost answer. Such an object is adopted: the object is the awaited one if the name, the owner and the identity in
// the annotations say so. What the object has done meanwhile is what would have happened without the crash, so phase
// and deletion don't matter.
//
// An object of the Framework that is not adopted is a leftover: of an earlier attempt, of a task that a rescale has
// replaced, or changed by a user. Leftovers are deleted, but only the ones that are Checked: the status was found to
// be the stored one after the look at the leftovers. To a controller with an old status, the objects of its successor
// look like leftovers; such a controller finds that out first, and deletes nothing.

// creationPersisted reports whether the API server knows that the attempt waits for a ConfigMap.
func (d *decision) creationPersisted() bool {
	return d.Persisted != nil &&
		d.Persisted.State == frameworkv1.FrameworkAttemptCreationPending &&
		d.Persisted.AttemptStatus.ID == d.next.AttemptStatus.ID
}

// adoptConfigMap makes the existing ConfigMap the attempt's, if the attempt waits for it.
func (d *decision) adoptConfigMap() {
	if d.ConfigMap != nil && d.creationPersisted() && d.isAwaitedConfigMap() {
		d.attemptBecomesCreationRequested(d.ConfigMap.UID)
	}
}

// isAwaitedConfigMap reports whether the ConfigMap is as the attempt would create it. The caller of Decide has checked
// the name and the controller.
func (d *decision) isAwaitedConfigMap() bool {
	// The finalizer is there as long as the ConfigMap waits for the Pods.
	waitsForPods := slices.Contains(d.ConfigMap.Finalizers, metav1.FinalizerDeleteDependents)
	return waitsForPods && blocksDeletionOf(d.ConfigMap, d.Framework.UID) &&
		d.ConfigMap.Annotations[frameworkv1.KeyFrameworkAttemptID] == strconv.Itoa(int(d.next.AttemptStatus.ID))
}

// adoptPod makes the existing Pod the task's, if the task waits for it.
func (t cursor) adoptPod() {
	task, persisted := t.status(), t.persisted()
	pod := t.d.Pods[task.AttemptStatus.PodName]
	if pod == nil || persisted == nil || persisted.State != frameworkv1.TaskAttemptCreationPending || !t.isAwaitedPod(pod) {
		return
	}
	t.taskBecomesCreationRequested(pod.UID)
	if t.d.adopted == nil {
		t.d.adopted = map[types.UID]bool{}
	}
	t.d.adopted[pod.UID] = true
}

// persistedAwaits returns the Pod that a new controller would adopt for the task because the written status is older
// than this controller's decision; nil if there is none.
func (t cursor) persistedAwaits() *corev1.Pod {
	task, persisted := t.status(), t.persisted()
	pod := t.d.Pods[task.AttemptStatus.PodName]
	if pod == nil || pod == t.pod() || t.d.next.AttemptStatus.ConfigMapUID == nil ||
		persisted == nil || persisted.State != frameworkv1.TaskAttemptCreationPending ||
		task.State == frameworkv1.TaskAttemptCreationPending || !t.isAwaitedPod(pod) {
		return nil
	}
	return pod
}

// isAwaitedPod reports whether a Pod with the task's name is as the task would create it.
func (t cursor) isAwaitedPod(pod *corev1.Pod) bool {
	task := t.status()
	inGroup := pod.Labels[schedulingv1alpha1.LabelPodGroup] == frameworkv1.PodGroupName(t.d.Framework.Name)
	return blocksDeletionOf(pod, *t.d.next.AttemptStatus.ConfigMapUID) && inGroup == t.d.isGang() &&
		pod.Annotations[frameworkv1.KeyTaskRoleUID] == string(t.role.InstanceUID) &&
		pod.Annotations[frameworkv1.KeyTaskUID] == string(task.InstanceUID) &&
		pod.Annotations[frameworkv1.KeyTaskAttemptID] == strconv.Itoa(int(task.AttemptStatus.ID))
}

// blocksDeletionOf reports whether the owner is the object's controller, and a deletion of the owner in the
// foreground waits for the object.
func blocksDeletionOf(object metav1.Object, owner types.UID) bool {
	controller := metav1.GetControllerOfNoCopy(object)
	return controller != nil && controller.UID == owner &&
		controller.BlockOwnerDeletion != nil && *controller.BlockOwnerDeletion
}

// runningSince returns when a running Pod began to run. An adopted Pod ran before this controller saw it, so the time
// is the one in the Pod's status, but neither before the attempt's beginning nor after now.
func (t cursor) runningSince(pod *corev1.Pod) metav1.Time {
	begun := t.status().AttemptStatus.StartTime
	if !t.d.adopted[pod.UID] || pod.Status.StartTime == nil || !pod.Status.StartTime.Before(&t.d.now) {
		return t.d.now
	}
	if pod.Status.StartTime.Before(&begun) {
		return begun
	}
	return *pod.Status.StartTime
}
