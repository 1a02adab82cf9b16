// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// mayStart reports whether Pods of a task may be created: the tasks in its dependsOn must be ready, all of them or at
// least one, depending on dependsOn.iteration.
func (d *decision) mayStart(t *task) bool {
	on := t.spec.DependsOn
	if on == nil || len(on.Name) == 0 {
		return true
	}
	for _, name := range on.Name {
		ready := d.isReady(d.taskOf(name))
		if ready && on.Iteration == batchv1alpha1.IterationAny {
			return true
		}
		if !ready && on.Iteration != batchv1alpha1.IterationAny {
			return false
		}
	}
	return on.Iteration != batchv1alpha1.IterationAny
}

// isReady reports whether at least minAvailable Pods of a task have succeeded, or run with all containers ready.
func (d *decision) isReady(t *task) bool {
	if t == nil {
		return false
	}
	ready := t.record.succeeded.Count()
	for _, m := range t.members {
		if d.standing(m) == alive && m.Status.Phase == corev1.PodRunning && allReady(m.Pod) {
			ready++
		}
	}
	return ready >= t.minAvailable()
}

// allReady reports whether all containers of a Pod are ready.
func allReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.ContainersReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if !status.Ready {
			return false
		}
	}
	return len(pod.Status.ContainerStatuses) > 0
}
