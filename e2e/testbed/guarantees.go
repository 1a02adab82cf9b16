// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// brokenGuarantees says what in a history must not have happened, as long as
// nobody deletes Pods by force or Frameworks in the background:
//
//  1. at most one instance of a task runs at any time;
//  2. none runs of a task that is completed, or of which the status has no word;
//  3. at most one attempt of a Framework runs at any time;
//  4. none runs of a Framework that is completed or gone;
//
// and besides that an attempt never comes again, its end never changes, and no
// status goes back in time. A Pod runs, in this sense, from its creation until
// its containers have ended or it is gone, whichever is first.
//
// Statuses that are stored compressed tell nothing about tasks.
func brokenGuarantees(events []event) []string {
	h := history{frameworks: map[string]*frameworkv1.Framework{}, pods: map[string]map[string]*corev1.Pod{}, newest: map[string]int{}}
	for _, e := range events {
		if e.framework != nil {
			h.frameworkChanged(e.framework, e.gone)
		} else {
			h.podChanged(e.pod, e.gone)
		}
	}
	return h.broken
}

// history is where a replay of events has got to.
type history struct {
	frameworks map[string]*frameworkv1.Framework
	// pods are those that exist, by Framework and name.
	pods map[string]map[string]*corev1.Pod
	// newest is the newest attempt of each instance of a Framework or task that
	// ever had a Pod.
	newest map[string]int
	broken []string
}

func (h *history) complain(format string, args ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
}

func (h *history) podChanged(pod *corev1.Pod, gone bool) {
	name := pod.Annotations[frameworkv1.KeyFrameworkName]
	if name == "" {
		return
	}
	if gone {
		delete(h.pods[name], pod.Name)
		return
	}
	if h.pods[name] == nil {
		h.pods[name] = map[string]*corev1.Pod{}
	}
	before := h.pods[name][pod.Name]
	h.pods[name][pod.Name] = pod
	if before == nil {
		h.notOlder(pod, frameworkv1.KeyFrameworkUID, frameworkv1.KeyFrameworkAttemptID)
		h.notOlder(pod, frameworkv1.KeyTaskUID, frameworkv1.KeyTaskAttemptID)
	} else if before.UID != pod.UID {
		h.complain("Pod %s has come twice: first %s, then %s", pod.Name, before.UID, pod.UID)
	}
	h.checkRunning(name)
}

// notOlder holds that no Pod is made for an attempt that a later one has
// followed.
func (h *history) notOlder(pod *corev1.Pod, instance, attempt string) {
	uid := pod.Annotations[instance]
	id, err := strconv.Atoi(pod.Annotations[attempt])
	if err != nil || uid == "" {
		h.complain("Pod %s has the annotations %s=%q, %s=%q", pod.Name, instance, uid, attempt, pod.Annotations[attempt])
		return
	}
	if id < h.newest[uid] {
		h.complain("Pod %s was made for %s=%d of %s, after one of %d", pod.Name, attempt, id, uid, h.newest[uid])
	}
	h.newest[uid] = max(h.newest[uid], id)
}

func (h *history) frameworkChanged(fw *frameworkv1.Framework, gone bool) {
	before := h.frameworks[fw.Name]
	if gone {
		delete(h.frameworks, fw.Name)
	} else {
		h.frameworks[fw.Name] = fw
		if before != nil && before.UID == fw.UID && before.Status != nil {
			h.checkProgress(fw.Name, before.Status, fw.Status)
		}
	}
	h.checkRunning(fw.Name)
}

// checkRunning compares the Pods of a Framework with its status.
func (h *history) checkRunning(name string) {
	fw := h.frameworks[name]
	attempts := map[string]bool{}
	for _, pod := range h.pods[name] {
		if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		attempts[pod.Annotations[frameworkv1.KeyConfigMapUID]] = true
		switch {
		case fw == nil:
			h.complain("Pod %s runs, and Framework %s is gone", pod.Name, name)
		case fw.Status == nil:
			h.complain("Pod %s runs, and Framework %s has no status", pod.Name, name)
		case fw.Status.State == frameworkv1.FrameworkAttemptCompleted, fw.Status.State == frameworkv1.FrameworkCompleted:
			h.complain("Pod %s runs, and %s", pod.Name, localenv.DescribeFramework(fw))
		default:
			h.checkTask(pod, fw.Status)
		}
	}
	if len(attempts) > 1 {
		h.complain("%d attempts of Framework %s run at once", len(attempts), name)
	}
}

func (h *history) checkTask(pod *corev1.Pod, status *frameworkv1.FrameworkStatus) {
	if len(status.AttemptStatus.TaskRoleStatusesCompressed) > 0 {
		return
	}
	task := taskOf(status, pod.Annotations[frameworkv1.KeyTaskUID])
	switch {
	case task == nil:
		h.complain("Pod %s runs, and the status has no task %s", pod.Name, pod.Annotations[frameworkv1.KeyTaskUID])
	case task.State == frameworkv1.TaskAttemptCompleted, task.State == frameworkv1.TaskCompleted:
		h.complain("Pod %s runs, and its task is %s", pod.Name, task.State)
	}
}

func taskOf(status *frameworkv1.FrameworkStatus, uid string) *frameworkv1.TaskStatus {
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			if string(task.InstanceUID) == uid {
				return task
			}
		}
	}
	return nil
}

// checkProgress compares two statuses of a Framework that followed each other.
func (h *history) checkProgress(name string, before, after *frameworkv1.FrameworkStatus) {
	if after == nil {
		h.complain("Framework %s has lost its status", name)
		return
	}
	old, now := before.AttemptStatus, after.AttemptStatus
	switch {
	case now.ID < old.ID,
		after.RetryPolicyStatus.TotalRetriedCount < before.RetryPolicyStatus.TotalRetriedCount,
		after.RetryPolicyStatus.AccountableRetriedCount < before.RetryPolicyStatus.AccountableRetriedCount:
		h.complain("Framework %s went back from attempt %d %+v to %d %+v", name, old.ID, before.RetryPolicyStatus, now.ID, after.RetryPolicyStatus)
	case now.ID > old.ID && before.State != frameworkv1.FrameworkAttemptCompleted:
		h.complain("Framework %s was %s when its attempt %d began", name, before.State, now.ID)
	case after.TransitionTime.Before(&before.TransitionTime):
		h.complain("Framework %s went back from %s to %s", name, before.TransitionTime, after.TransitionTime)
	}
	if now.ID != old.ID {
		return
	}
	if old.CompletionStatus != nil && !reflect.DeepEqual(old.CompletionStatus, now.CompletionStatus) {
		h.complain("the end of attempt %d of Framework %s changed from %+v to %+v", now.ID, name, old.CompletionStatus, now.CompletionStatus)
	}
	if slices.Index(frameworkStates, after.State) < slices.Index(frameworkStates, before.State) {
		h.complain("attempt %d of Framework %s went back from %s to %s", now.ID, name, before.State, after.State)
	}
	h.checkTasks(before, after)
}

// frameworkStates are in the order in which an attempt goes through them.
var frameworkStates = []frameworkv1.FrameworkState{
	frameworkv1.FrameworkAttemptCreationPending, frameworkv1.FrameworkAttemptCreationRequested,
	frameworkv1.FrameworkAttemptPreparing, frameworkv1.FrameworkAttemptRunning,
	frameworkv1.FrameworkAttemptDeletionPending, frameworkv1.FrameworkAttemptDeletionRequested, frameworkv1.FrameworkAttemptDeleting,
	frameworkv1.FrameworkAttemptCompleted, frameworkv1.FrameworkCompleted,
}

// checkTasks compares the tasks of an attempt. One that waits to be created has nothing that must
// end before a task leaves it.
func (h *history) checkTasks(before, after *frameworkv1.FrameworkStatus) {
	unbegun := before.State == frameworkv1.FrameworkAttemptCreationPending
	current := map[types.UID]*frameworkv1.TaskStatus{}
	for _, role := range after.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			current[task.InstanceUID] = task
		}
	}
	for _, role := range before.AttemptStatus.TaskRoleStatuses {
		for _, old := range role.TaskStatuses {
			if now := current[old.InstanceUID]; now != nil {
				h.checkTaskProgress(old, now)
			} else if !unbegun && len(after.AttemptStatus.TaskRoleStatusesCompressed) == 0 && !(old.DeletionPending && old.State == frameworkv1.TaskCompleted) {
				h.complain("task %s left the status: it was %s, deletionPending %t", old.AttemptStatus.PodName, old.State, old.DeletionPending)
			}
		}
	}
}

func (h *history) checkTaskProgress(old, now *frameworkv1.TaskStatus) {
	name := old.AttemptStatus.PodName
	switch {
	case now.AttemptStatus.ID < old.AttemptStatus.ID,
		now.RetryPolicyStatus.TotalRetriedCount < old.RetryPolicyStatus.TotalRetriedCount,
		now.RetryPolicyStatus.AccountableRetriedCount < old.RetryPolicyStatus.AccountableRetriedCount:
		h.complain("task %s went back from attempt %d to %d", name, old.AttemptStatus.ID, now.AttemptStatus.ID)
	case old.DeletionPending && !now.DeletionPending:
		h.complain("task %s was marked for deletion and is not any more", name)
	case old.State == frameworkv1.TaskCompleted && now.State != old.State:
		h.complain("task %s was Completed and is %s", name, now.State)
	case now.AttemptStatus.ID == old.AttemptStatus.ID && slices.Index(taskStates, now.State) < slices.Index(taskStates, old.State) && !startsAgain(old, now):
		h.complain("attempt %d of task %s went back from %s to %s", now.AttemptStatus.ID, name, old.State, now.State)
	case now.AttemptStatus.ID == old.AttemptStatus.ID && old.AttemptStatus.CompletionStatus != nil &&
		!reflect.DeepEqual(old.AttemptStatus.CompletionStatus, now.AttemptStatus.CompletionStatus):
		h.complain("the end of attempt %d of task %s changed from %+v to %+v", now.AttemptStatus.ID, name,
			old.AttemptStatus.CompletionStatus, now.AttemptStatus.CompletionStatus)
	}
}

// taskStates are in the order in which an attempt of a task goes through them.
var taskStates = []frameworkv1.TaskState{
	frameworkv1.TaskAttemptCreationPending, frameworkv1.TaskAttemptCreationRequested,
	frameworkv1.TaskAttemptPreparing, frameworkv1.TaskAttemptRunning,
	frameworkv1.TaskAttemptDeletionPending, frameworkv1.TaskAttemptDeletionRequested, frameworkv1.TaskAttemptDeleting,
	frameworkv1.TaskAttemptCompleted, frameworkv1.TaskCompleted,
}

// startsAgain is true of a task whose Pod runs no more and not yet again.
func startsAgain(old, now *frameworkv1.TaskStatus) bool {
	return old.State == frameworkv1.TaskAttemptRunning && now.State == frameworkv1.TaskAttemptPreparing
}
