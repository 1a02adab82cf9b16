// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// checkAction holds that an action rests on what the API server has. The world
// has already done it.
func (l *life) checkAction(action Action) {
	l.t.Helper()
	if l.verbose {
		l.t.Logf("do    %s", action)
	}
	status := l.written
	fail := func() {
		l.t.Helper()
		l.t.Errorf("%s while %s is persisted", action, transcript(status))
	}
	task := taskNamed(status, action.Name)
	switch action.Does() {
	case DeleteConfigMap, DeletePod, ForceDeletePod, DeleteFramework:
		if action.UID == "" {
			l.t.Errorf("%s does not say which", action)
		}
	}
	switch action.Does() {
	case CreateConfigMap:
		if status.State != frameworkv1.FrameworkAttemptCreationPending || len(l.pods) > 0 ||
			l.seen().DeletionTimestamp != nil || status.AttemptStatus.Gang == nil {
			fail()
		}
	case DeleteConfigMap:
		own := l.configMap != nil && l.configMap.UID == action.UID &&
			l.configMap.Annotations[frameworkv1.KeyFrameworkAttemptID] == strconv.Itoa(int(status.AttemptStatus.ID))
		if own && status.AttemptStatus.CompletionStatus == nil {
			fail()
		}
	case CreatePodGroup, UpdatePodGroup:
		if !status.AttemptStatus.Gang.Enabled {
			fail()
		}
	case CreatePod:
		if pod := l.pods[action.Name]; pod != nil && !(l.mayCreate(pod, task) && l.groupIsReady()) {
			fail()
		}
	case DeletePod:
		if l.isPresentAttempt(action, task) && task.AttemptStatus.CompletionStatus == nil && status.AttemptStatus.CompletionStatus == nil {
			fail()
		}
	case ForceDeletePod:
		if !l.mayForce(action) {
			fail()
		}
	case DeleteFramework:
		if status.State != frameworkv1.FrameworkCompleted || l.now.Before(status.TransitionTime.Add(l.options.CompletedRetention)) {
			fail()
		}
	}
}

// isPresentAttempt says whether a Pod to be deleted is the present attempt of a task: no
// such Pod is deleted only because a controller died before it wrote its UID.
func (l *life) isPresentAttempt(action Action, task *frameworkv1.TaskStatus) bool {
	pod := l.pods[action.Name]
	if pod == nil || pod.UID != action.UID || task == nil || l.configMap == nil {
		return false
	}
	inGang := pod.Labels[schedulingv1alpha1.LabelPodGroup] != ""
	return pod.Annotations[frameworkv1.KeyTaskUID] == string(task.InstanceUID) &&
		pod.Annotations[frameworkv1.KeyTaskAttemptID] == strconv.Itoa(int(task.AttemptStatus.ID)) &&
		pod.Annotations[frameworkv1.KeyConfigMapUID] == string(l.configMap.UID) &&
		l.written.AttemptStatus.Gang != nil && inGang == l.written.AttemptStatus.Gang.Enabled
}

// groupIsReady says whether the attempt has a PodGroup that does not wait for
// more members than there are tasks, if it needs one.
func (l *life) groupIsReady() bool {
	if !l.written.AttemptStatus.Gang.Enabled {
		return true
	}
	tasks := int32(0)
	for _, task := range tasksByUID(l.written) {
		if !task.DeletionPending {
			tasks++
		}
	}
	return l.cache.podGroup != nil && l.cache.podGroup.Spec.MinMember <= tasks
}

// mayCreate says whether a Pod that is there was rightly created for this attempt
// of this task of this attempt of the Framework: the rescale guarantees rest on
// that, too. A Pod that was there before has other annotations or is recorded.
func (l *life) mayCreate(pod *corev1.Pod, task *frameworkv1.TaskStatus) bool {
	attempt := &l.written.AttemptStatus
	if task == nil || attempt.CompletionStatus != nil || task.DeletionPending {
		return false
	}
	// The ConfigMap of an attempt may be known to nobody else yet.
	configMap := l.controller.status.AttemptStatus.ConfigMapUID
	if configMap == nil || attempt.ConfigMapUID != nil && *attempt.ConfigMapUID != *configMap {
		return false
	}
	if isMember := pod.Labels[schedulingv1alpha1.LabelPodGroup] != ""; isMember != attempt.Gang.Enabled {
		return false
	}
	return pod.Annotations[frameworkv1.KeyTaskUID] == string(task.InstanceUID) &&
		pod.Annotations[frameworkv1.KeyTaskAttemptID] == strconv.Itoa(int(task.AttemptStatus.ID)) &&
		pod.Annotations[frameworkv1.KeyConfigMapUID] == string(*configMap) &&
		pod.Annotations[frameworkv1.KeyFrameworkAttemptID] == strconv.Itoa(int(attempt.ID)) &&
		(task.AttemptStatus.PodUID == nil || *task.AttemptStatus.PodUID == pod.UID)
}

// mayForce says whether the persisted timeout of a Pod's deletion is over.
func (l *life) mayForce(action Action) bool {
	pod := l.cache.pods[action.Name]
	if listed := l.controller.listed[action.Name]; listed != nil {
		pod = listed.pod // The cache is behind.
	}
	if pod == nil || pod.UID != action.UID {
		return true // The world has just told that it is gone.
	}
	for _, role := range l.written.AttemptStatus.TaskRoleStatuses {
		if role.Name == pod.Labels[frameworkv1.KeyTaskRoleName] && role.PodGracefulDeletionTimeoutSec != nil {
			begun := pod.DeletionTimestamp.Add(-time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second)
			return !l.now.Before(begun.Add(time.Duration(*role.PodGracefulDeletionTimeoutSec) * time.Second))
		}
	}
	return false
}
