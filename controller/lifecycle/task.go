// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// cursor points at one task of the status in the making.
type cursor struct {
	d    *decision
	role *frameworkv1.TaskRoleStatus
	// spec of the role. Nil once the role has left the Framework's spec.
	spec  *frameworkv1.TaskRoleSpec
	index int
}

// eachTask visits all tasks: roles in the order of the status, then by index.
func (d *decision) eachTask(visit func(cursor)) {
	for _, role := range d.next.AttemptStatus.TaskRoleStatuses {
		spec := d.specRoles[role.Name]
		for index := range role.TaskStatuses {
			visit(cursor{d: d, role: role, spec: spec, index: index})
		}
	}
}

// rolesByName finds roles of a status.
func rolesByName(roles []*frameworkv1.TaskRoleStatus) map[string]*frameworkv1.TaskRoleStatus {
	byName := make(map[string]*frameworkv1.TaskRoleStatus, len(roles))
	for _, role := range roles {
		byName[role.Name] = role
	}
	return byName
}

func (t cursor) status() *frameworkv1.TaskStatus {
	return t.role.TaskStatuses[t.index]
}

// edit returns a copy of the task in the task's place, to be changed.
func (t cursor) edit() *frameworkv1.TaskStatus {
	task := *t.role.TaskStatuses[t.index]
	t.role.TaskStatuses[t.index] = &task
	return &task
}

// persisted returns the same attempt of the same task in the persisted status; nil if that status lacks the attempt.
func (t cursor) persisted() *frameworkv1.TaskStatus {
	task := t.status()
	role := t.d.persistedRoles[t.role.Name]
	if role == nil || t.index >= len(role.TaskStatuses) {
		return nil
	}
	persisted := role.TaskStatuses[t.index]
	if persisted.InstanceUID != task.InstanceUID || persisted.AttemptStatus.ID != task.AttemptStatus.ID {
		return nil
	}
	return persisted
}

// wanted reports whether the task is in the spec and is not being scaled down.
func (t cursor) wanted() bool {
	return t.spec != nil && !t.status().DeletionPending
}

// newTaskRole returns a role that has not begun.
func (d *decision) newTaskRole(spec *frameworkv1.TaskRoleSpec) *frameworkv1.TaskRoleStatus {
	role := &frameworkv1.TaskRoleStatus{
		Name:                          spec.Name,
		InstanceUID:                   d.NewUID(),
		PodGracefulDeletionTimeoutSec: spec.Task.PodGracefulDeletionTimeoutSec,
		TaskStatuses:                  make([]*frameworkv1.TaskStatus, 0, spec.TaskNumber),
	}
	for index := range spec.TaskNumber {
		role.TaskStatuses = append(role.TaskStatuses, d.newTask(spec.Name, index))
	}
	return role
}

// newTask returns a task that has not begun.
func (d *decision) newTask(role string, index int32) *frameworkv1.TaskStatus {
	return &frameworkv1.TaskStatus{
		Index:          index,
		InstanceUID:    d.NewUID(),
		StartTime:      d.now,
		State:          frameworkv1.TaskAttemptCreationPending,
		TransitionTime: d.now,
		AttemptStatus:  d.newTaskAttempt(role, index, 0),
	}
}

func (d *decision) newTaskAttempt(role string, index, id int32) frameworkv1.TaskAttemptStatus {
	return frameworkv1.TaskAttemptStatus{
		ID:        id,
		StartTime: d.now,
		PodName:   frameworkv1.PodName(d.Framework.Name, role, index),
	}
}

// pod returns the cached Pod of the task's attempt.
func (t cursor) pod() *corev1.Pod {
	attempt := &t.status().AttemptStatus
	pod := t.d.Pods[attempt.PodName]
	if pod == nil || attempt.PodUID == nil || pod.UID != *attempt.PodUID {
		return nil
	}
	return pod
}

// follow updates the task's state from the Pod, and then decides on a retry.
func (t cursor) follow() {
	switch t.status().State {
	case frameworkv1.TaskCompleted:
		return
	case frameworkv1.TaskAttemptCreationPending:
		t.adoptPod()
		if t.status().State == frameworkv1.TaskAttemptCreationRequested {
			t.followPod()
		} else if !t.wanted() && t.d.noPod[t.status().AttemptStatus.PodName] {
			t.taskBecomesAttemptCompleted(deleteTaskRequested())
		}
	case frameworkv1.TaskAttemptCreationRequested:
		if t.pod() == nil {
			t.awaitPod()
		} else {
			t.followPod()
		}
	default:
		if t.status().State.Associated() {
			t.followPod()
		}
	}
	if t.status().State == frameworkv1.TaskAttemptCompleted {
		t.retry()
	}
}

func deleteTaskRequested() *frameworkv1.TaskAttemptCompletionStatus {
	return taskCompletion(frameworkv1.CodeDeleteTaskRequested, "User has requested to delete the task by rescaling")
}

// awaitPod gives up a created Pod that is gone without having been seen.
func (t cursor) awaitPod() {
	timedOut, _ := t.creationTimedOut()
	switch {
	case !t.podIsGone(), t.nameIsTaken():
	case t.status().DeletionPending:
		t.taskBecomesAttemptCompleted(deleteTaskRequested())
	case timedOut:
		t.taskBecomesAttemptCompleted(taskCompletion(frameworkv1.CodePodCreationTimeout,
			fmt.Sprintf("The created Pod was not seen within %v, and is gone", t.d.Options.CreationTimeout)))
	default:
		t.taskBecomesAttemptCompleted(podDeleted())
	}
}

// creationTimedOut reports whether the created Pod should have been seen by now. If not, `at` is the time by which it
// should be seen.
func (t cursor) creationTimedOut() (timedOut bool, at time.Time) {
	return t.d.over(t.status().TransitionTime, t.d.Options.CreationTimeout)
}

// followPod follows a Pod that has been seen.
func (t cursor) followPod() {
	pod := t.pod()
	if pod == nil {
		if t.podIsGone() && !t.nameIsTaken() {
			t.taskBecomesAttemptCompleted(podDeleted())
		}
		return
	}
	t.d.recorded++
	t.copyAddresses(pod)
	switch t.status().State {
	case frameworkv1.TaskAttemptDeleting:
		return
	case frameworkv1.TaskAttemptCreationRequested:
		if pod.DeletionTimestamp == nil {
			t.taskBecomesPreparing()
		}
	}
	if pod.DeletionTimestamp != nil {
		t.taskBecomesDeleting(podExternalDeleted(pod))
		return
	}
	switch t.status().State {
	case frameworkv1.TaskAttemptPreparing, frameworkv1.TaskAttemptRunning:
		t.followPhase(pod)
	}
}

// podIsGone reports whether the task's Pod is gone for good.
func (t cursor) podIsGone() bool {
	return t.pod() == nil && t.d.Gone[*t.status().AttemptStatus.PodUID]
}

// nameIsTaken reports whether a Pod that is not known to be gone has the name of the task's Pod. Call it only if the
// task's Pod is gone (see podIsGone): then the Pod is another one. That happens if a former leader wrote late and
// brought back a Pod that the new leader had replaced. The task's attempt does not end before that Pod is deleted.
func (t cursor) nameIsTaken() bool {
	pod := t.d.Pods[t.status().AttemptStatus.PodName]
	return pod != nil && !t.d.Gone[pod.UID]
}

// podIsOutOfSight reports whether the cache should have the task's Pod and does not, although no deletion was seen; the
// Pod may only have lost a label. If the Pod was just created, and the task still needs a Pod, the cache has until `at`
// to show the Pod.
func (t cursor) podIsOutOfSight() (outOfSight bool, at time.Time) {
	task := t.status()
	switch {
	case !task.State.Associated() || t.pod() != nil || t.podIsGone():
		return false, time.Time{}
	case task.State != frameworkv1.TaskAttemptCreationRequested || t.d.completing() || task.DeletionPending:
		return true, time.Time{}
	default:
		return t.creationTimedOut()
	}
}

// mayHaveUnseenPod reports whether the task may have a Pod that the controller has not seen yet. That is possible once
// the written status says that the Pod is about to be created.
func (t cursor) mayHaveUnseenPod() bool {
	persisted := t.persisted()
	return t.status().State == frameworkv1.TaskAttemptCreationPending &&
		persisted != nil && persisted.State == frameworkv1.TaskAttemptCreationPending
}

func podDeleted() *frameworkv1.TaskAttemptCompletionStatus {
	return taskCompletion(frameworkv1.CodePodExternalDeleted, "The Pod was deleted from outside")
}

// followPhase follows the phase of a Pod that is not being deleted.
func (t cursor) followPhase(pod *corev1.Pod) {
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		completion := taskCompletion(frameworkv1.CodeSucceeded, "Pod succeeded")
		completion.Pod = podCompletion(pod)
		t.taskBecomesDeletionPending(completion)
		return
	case corev1.PodFailed:
		t.taskBecomesDeletionPending(t.d.Options.PodFailures.Classify(pod))
		return
	case corev1.PodPending:
		if t.status().State == frameworkv1.TaskAttemptRunning {
			t.taskBecomesPreparing()
		}
	case corev1.PodRunning:
		if t.status().State == frameworkv1.TaskAttemptPreparing {
			t.taskBecomesRunning(t.runningSince(pod))
		}
	case corev1.PodUnknown:
		// The node does not answer: the state does not change.
	case "":
		// Just created; the API server sets Pending.
	default:
		t.d.Fail(fmt.Errorf("pod %s has the unknown phase %q", pod.Name, pod.Status.Phase))
	}
	switch task := t.status(); {
	case task.DeletionPending:
		t.taskBecomesDeletionPending(deleteTaskRequested())
	case task.State == frameworkv1.TaskAttemptPreparing && task.AttemptStatus.CompletionStatus == nil && pod.Status.Phase != corev1.PodUnknown:
		if !t.endsByPreparing(pod) {
			t.followWaiting(pod)
		}
	}
}

// copyAddresses copies from the Pod the node and the addresses.
func (t cursor) copyAddresses(pod *corev1.Pod) {
	have := &t.status().AttemptStatus
	node, ip, host := pod.Spec.NodeName, pod.Status.PodIP, pod.Status.HostIP
	if ptr.Equal(have.PodNodeName, &node) && ptr.Equal(have.PodIP, &ip) && ptr.Equal(have.PodHostIP, &host) {
		return
	}
	attempt := &t.edit().AttemptStatus
	attempt.PodNodeName, attempt.PodIP, attempt.PodHostIP = ptr.To(node), ptr.To(ip), ptr.To(host)
}

// podExternalDeleted returns the completion status for a Pod that another client deletes. If Kubernetes itself deletes
// it, the condition DisruptionTarget shows which component does.
func podExternalDeleted(pod *corev1.Pod) *frameworkv1.TaskAttemptCompletionStatus {
	diagnostics := "The Pod is being deleted from outside"
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			diagnostics += fmt.Sprintf(": %s: %s", condition.Reason, condition.Message)
		}
	}
	completion := taskCompletion(frameworkv1.CodePodExternalDeleted, diagnostics)
	completion.Disruption = disruptionOf(podend.Of(pod))
	return completion
}

// retry decides whether the task gets another attempt, once AttemptCompleted is written, and begins it after the delay.
func (t cursor) retry() {
	persisted := t.persisted()
	if persisted == nil || persisted.State != frameworkv1.TaskAttemptCompleted {
		return // persistEnds sees to it.
	}
	task := t.status()
	decision := t.decideRetry()
	if task.RetryPolicyStatus.RetryDelaySec == nil {
		if !decision.retry {
			t.taskBecomesCompleted()
			if task.DeletionPending {
				t.d.Persist(plan.PersistSoon) // Its removal waits for that.
			}
			return
		}
		delay := decision.delay.draw(t.d)
		task = t.edit()
		task.RetryPolicyStatus.RetryDelaySec = &delay
		task.RetryPolicyStatus.BackoffSec = decision.backoffSec
	}
	delay := configv1alpha1.Seconds(*task.RetryPolicyStatus.RetryDelaySec)
	if over, at := t.d.over(task.TransitionTime, delay); !over && !task.DeletionPending {
		t.d.WakeAt(at)
		return
	}
	t.d.history = append(t.d.history, History{
		Trigger: OnTaskRetry, Framework: t.d.withPersistedStatus(), TaskRole: t.role, Task: persisted,
	})
	t.taskBecomesCreationPending(decision.accountable)
}

// persistEnds has the ends of tasks' attempts written, because retries, the completion policy and the PodGroup's
// minimums wait for that. If no task will have another Pod, only the end of the Framework's attempt waits, and the
// write may wait until the last Pod is gone.
func (d *decision) persistEnds() (goOn bool) {
	if d.completing() {
		return true
	}
	unwritten, last, removed := false, true, true
	d.eachTask(func(t cursor) {
		state := t.status().State
		if state == frameworkv1.TaskAttemptCompleted {
			persisted := t.persisted()
			unwritten = unwritten || persisted == nil || persisted.State != state
		}
		last = last && t.lastAttemptEnds()
		removed = removed && !state.Associated()
	})
	switch {
	case !unwritten:
	case !last:
		d.Persist(plan.PersistSoon)
	case removed:
		d.Persist(plan.PersistNow)
	}
	return true
}

// lastAttemptEnds reports whether the end of the attempt is decided, and the task will neither be retried nor removed.
func (t cursor) lastAttemptEnds() bool {
	return t.wanted() && t.status().AttemptStatus.CompletionStatus != nil && !t.decideRetry().retry
}

// anyTaskRunning reports whether a task that stays is running.
func (d *decision) anyTaskRunning() bool {
	running := false
	d.eachTask(func(t cursor) {
		running = running || t.status().State == frameworkv1.TaskAttemptRunning && !t.status().DeletionPending
	})
	return running
}

// taskFailures gathers the failures of a round into one event.
type taskFailures struct {
	count int
	first string
}

func (t cursor) noteTaskFailure(task *frameworkv1.TaskStatus, completion frameworkv1.CompletionStatus) {
	switch completion.Code {
	case frameworkv1.CodeFrameworkAttemptCompletion, frameworkv1.CodeDeleteTaskRequested:
		return
	}
	if t.d.taskFailures.count++; t.d.taskFailures.count == 1 {
		t.d.taskFailures.first = fmt.Sprintf("Task %s[%d] attempt %d failed with %s",
			t.role.Name, task.Index, task.AttemptStatus.ID, describe(completion))
	}
}

func (d *decision) noteTaskFailures() {
	if d.taskFailures.count == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(d.taskFailures.first)
	if more := d.taskFailures.count - 1; more > 0 {
		fmt.Fprintf(&b, " (and %d more failed)", more)
	}
	d.Tell(true, ReasonTaskFailed, "%s", b.String())
}
