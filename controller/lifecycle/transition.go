// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// frameworkExits returns the states that may follow a state of a Framework. The meaning of each, and why it is left, is
// documented at its constant.
func frameworkExits(from frameworkv1.FrameworkState) []frameworkv1.FrameworkState {
	const (
		creationPending   = frameworkv1.FrameworkAttemptCreationPending
		creationRequested = frameworkv1.FrameworkAttemptCreationRequested
		preparing         = frameworkv1.FrameworkAttemptPreparing
		running           = frameworkv1.FrameworkAttemptRunning
		deletionPending   = frameworkv1.FrameworkAttemptDeletionPending
		deletionRequested = frameworkv1.FrameworkAttemptDeletionRequested
		deleting          = frameworkv1.FrameworkAttemptDeleting
		attemptCompleted  = frameworkv1.FrameworkAttemptCompleted
		completed         = frameworkv1.FrameworkCompleted
	)
	switch from {
	case creationPending:
		return []frameworkv1.FrameworkState{creationRequested, attemptCompleted}
	case creationRequested:
		return []frameworkv1.FrameworkState{preparing, deleting, attemptCompleted}
	case preparing:
		return []frameworkv1.FrameworkState{running, deletionPending, deleting, attemptCompleted}
	case running:
		return []frameworkv1.FrameworkState{deletionPending, deleting, attemptCompleted}
	case deletionPending:
		return []frameworkv1.FrameworkState{deletionRequested, deleting, attemptCompleted}
	case deletionRequested:
		return []frameworkv1.FrameworkState{deleting, attemptCompleted}
	case deleting:
		return []frameworkv1.FrameworkState{attemptCompleted}
	case attemptCompleted:
		return []frameworkv1.FrameworkState{creationPending, completed}
	default:
		return nil
	}
}

// taskExits returns the states that may follow a state of a task. In addition, each task can go from any state to
// completed once the Framework's attempt is completed.
func taskExits(from frameworkv1.TaskState) []frameworkv1.TaskState {
	const (
		creationPending   = frameworkv1.TaskAttemptCreationPending
		creationRequested = frameworkv1.TaskAttemptCreationRequested
		preparing         = frameworkv1.TaskAttemptPreparing
		running           = frameworkv1.TaskAttemptRunning
		deletionPending   = frameworkv1.TaskAttemptDeletionPending
		deletionRequested = frameworkv1.TaskAttemptDeletionRequested
		deleting          = frameworkv1.TaskAttemptDeleting
		attemptCompleted  = frameworkv1.TaskAttemptCompleted
		completed         = frameworkv1.TaskCompleted
	)
	switch from {
	case creationPending:
		return []frameworkv1.TaskState{creationRequested, attemptCompleted}
	case creationRequested:
		return []frameworkv1.TaskState{preparing, deleting, attemptCompleted}
	case preparing:
		return []frameworkv1.TaskState{running, deletionPending, deleting, attemptCompleted}
	case running:
		return []frameworkv1.TaskState{preparing, deletionPending, deleting, attemptCompleted}
	case deletionPending:
		return []frameworkv1.TaskState{deletionRequested, deleting, attemptCompleted}
	case deletionRequested:
		return []frameworkv1.TaskState{deleting, attemptCompleted}
	case deleting:
		return []frameworkv1.TaskState{attemptCompleted}
	case attemptCompleted:
		return []frameworkv1.TaskState{creationPending, completed}
	default:
		return nil
	}
}

func (d *decision) enter(to frameworkv1.FrameworkState) {
	from := d.next.State
	if !slices.Contains(frameworkExits(from), to) {
		d.giveUp(fmt.Errorf("framework state %q can't become %q", from, to))
		return
	}
	d.next.State = to
	d.next.TransitionTime = d.now
}

// attemptBecomesCreationRequested: the ConfigMap was created.
func (d *decision) attemptBecomesCreationRequested(configMap types.UID) {
	d.enter(frameworkv1.FrameworkAttemptCreationRequested)
	attempt := &d.next.AttemptStatus
	attempt.ConfigMapUID = &configMap
	attempt.InstanceUID = instanceUID(attempt.ID, configMap)
}

// attemptBecomesPreparing: the ConfigMap is seen. Tasks may get Pods.
func (d *decision) attemptBecomesPreparing() {
	d.enter(frameworkv1.FrameworkAttemptPreparing)
	d.Tell(false, ReasonAttemptStarted, "Attempt %d has started", d.next.AttemptStatus.ID)
	d.warnOfLowerClasses()
	d.warnOfRuntimes()
}

// attemptBecomesRunning: a task runs.
func (d *decision) attemptBecomesRunning() {
	d.enter(frameworkv1.FrameworkAttemptRunning)
	if d.next.RunTime == nil {
		d.next.RunTime = d.timeNow()
	}
	if d.next.AttemptStatus.RunTime == nil {
		d.next.AttemptStatus.RunTime = d.timeNow()
	}
	d.Tell(false, ReasonAttemptRunning, "Attempt %d is running", d.next.AttemptStatus.ID)
}

// attemptBecomesDeletionPending records that the attempt's end is decided. Tasks without a result of their own get the
// attempt's end as result; what their Pods do later does not count.
func (d *decision) attemptBecomesDeletionPending(completion *frameworkv1.FrameworkAttemptCompletionStatus) {
	d.enter(frameworkv1.FrameworkAttemptDeletionPending)
	d.complete(completion)
	d.eachTask(func(t cursor) {
		if t.status().AttemptStatus.CompletionStatus == nil {
			t.edit().AttemptStatus.CompletionStatus = taskCompletion(frameworkv1.CodeFrameworkAttemptCompletion,
				"The attempt of the Framework completed before this task did")
		}
	})
	d.Persist(plan.PersistNow)
}

// attemptBecomesDeletionRequested: the ConfigMap's deletion was accepted.
func (d *decision) attemptBecomesDeletionRequested() {
	d.enter(frameworkv1.FrameworkAttemptDeletionRequested)
}

// attemptBecomesDeleting records that the ConfigMap is being deleted. If the controller has not decided that, another
// client has deleted the ConfigMap or the Framework.
func (d *decision) attemptBecomesDeleting() {
	d.enter(frameworkv1.FrameworkAttemptDeleting)
	if d.next.AttemptStatus.CompletionStatus == nil {
		d.complete(attemptCompletion(frameworkv1.CodeConfigMapExternalDeleted,
			"The ConfigMap of the attempt, or the Framework, is being deleted from outside"))
		d.Persist(plan.PersistNow)
	}
}

// attemptBecomesAttemptCompleted records that the ConfigMap and all Pods are gone for good. completion counts only if
// no completion was decided before.
func (d *decision) attemptBecomesAttemptCompleted(completion *frameworkv1.FrameworkAttemptCompletionStatus) {
	d.enter(frameworkv1.FrameworkAttemptCompleted)
	if d.next.AttemptStatus.CompletionStatus == nil {
		d.complete(completion)
	}
	d.next.AttemptStatus.CompletionTime = d.timeNow()
	d.completePodGroup()
	d.eachTask(func(t cursor) {
		if t.status().State != frameworkv1.TaskCompleted {
			t.taskBecomesCompletedWithAttempt()
		}
	})
	d.recordAttempt()
	d.Persist(plan.PersistNow)
}

// attemptBecomesCreationPending: the next attempt begins, with new tasks made from the
// present spec.
func (d *decision) attemptBecomesCreationPending(accountable bool) {
	d.enter(frameworkv1.FrameworkAttemptCreationPending)
	retries := &d.next.RetryPolicyStatus
	retries.TotalRetriedCount++
	if accountable {
		retries.AccountableRetriedCount++
	}
	d.recordRetry(accountable, *retries.RetryDelaySec)
	retries.RetryDelaySec = nil
	d.next.AttemptStatus = d.newAttempt(retries.TotalRetriedCount)
	d.Persist(plan.PersistNow)
}

// attemptBecomesCompleted: there is no further attempt.
func (d *decision) attemptBecomesCompleted() {
	d.enter(frameworkv1.FrameworkCompleted)
	d.next.CompletionTime = d.timeNow()
	completion := d.next.AttemptStatus.CompletionStatus.CompletionStatus
	d.Tell(!succeeded(completion), ReasonCompleted, "Completed with %s", describe(completion))
	d.Persist(plan.PersistNow)
}

// complete records how the attempt ended. The time is set once.
func (d *decision) complete(completion *frameworkv1.FrameworkAttemptCompletionStatus) {
	if d.next.AttemptStatus.CompletionStatus != nil {
		d.giveUp(fmt.Errorf("attempt %d has already completed with %d", d.next.AttemptStatus.ID,
			d.next.AttemptStatus.CompletionStatus.Code))
		return
	}
	d.next.AttemptStatus.CompletionStatus = completion
	status := completion.CompletionStatus
	d.Tell(!succeeded(status), ReasonAttemptCompleted, "Attempt %d completed with %s", d.next.AttemptStatus.ID, describe(status))
}

func (t cursor) enter(to frameworkv1.TaskState) *frameworkv1.TaskStatus {
	from := t.status().State
	if !slices.Contains(taskExits(from), to) {
		t.d.giveUp(fmt.Errorf("task %s[%d] state %q can't become %q", t.role.Name, t.status().Index, from, to))
		return t.edit()
	}
	task := t.edit()
	task.State = to
	task.TransitionTime = t.d.now
	task.AttemptStatus.Waiting, task.AttemptStatus.PreparingSince = nil, nil
	return task
}

// taskBecomesCreationRequested: the Pod was created.
func (t cursor) taskBecomesCreationRequested(pod types.UID) {
	attempt := &t.enter(frameworkv1.TaskAttemptCreationRequested).AttemptStatus
	attempt.PodUID = &pod
	attempt.InstanceUID = instanceUID(attempt.ID, pod)
}

// taskBecomesPreparing: the Pod is seen and waits to run.
func (t cursor) taskBecomesPreparing() {
	t.enter(frameworkv1.TaskAttemptPreparing)
}

// taskBecomesRunning: the Pod runs.
func (t cursor) taskBecomesRunning(since metav1.Time) {
	task := t.enter(frameworkv1.TaskAttemptRunning)
	if task.RunTime == nil {
		task.RunTime = &since
	}
	if task.AttemptStatus.RunTime == nil {
		task.AttemptStatus.RunTime = &since
	}
}

// taskBecomesDeletionPending records that the end of the task's attempt is decided, and that its Pod is to be deleted.
// completion counts only if no completion was decided before.
func (t cursor) taskBecomesDeletionPending(completion *frameworkv1.TaskAttemptCompletionStatus) {
	task := t.enter(frameworkv1.TaskAttemptDeletionPending)
	t.settle(task, completion)
}

// taskBecomesDeletionRequested: the Pod's deletion was accepted.
func (t cursor) taskBecomesDeletionRequested() {
	t.enter(frameworkv1.TaskAttemptDeletionRequested)
}

// taskBecomesDeleting records that the Pod is being deleted. If the controller has not decided that, another client
// deleted the Pod or the ConfigMap.
func (t cursor) taskBecomesDeleting(completion *frameworkv1.TaskAttemptCompletionStatus) {
	task := t.enter(frameworkv1.TaskAttemptDeleting)
	t.settle(task, completion)
}

// taskBecomesAttemptCompleted records that the Pod is gone for good. completion counts only if no completion was
// decided before.
func (t cursor) taskBecomesAttemptCompleted(completion *frameworkv1.TaskAttemptCompletionStatus) {
	task := t.enter(frameworkv1.TaskAttemptCompleted)
	t.settle(task, completion)
	task.AttemptStatus.CompletionTime = t.d.timeNow()
}

// taskBecomesCreationPending: the next attempt of the task begins.
func (t cursor) taskBecomesCreationPending(accountable bool) {
	task := t.enter(frameworkv1.TaskAttemptCreationPending)
	task.RetryPolicyStatus.TotalRetriedCount++
	if accountable {
		task.RetryPolicyStatus.AccountableRetriedCount++
	}
	task.RetryPolicyStatus.RetryDelaySec = nil
	t.d.next.AttemptStatus.TaskAttempts.Retries++
	task.AttemptStatus = t.d.newTaskAttempt(t.role.Name, task.Index, task.RetryPolicyStatus.TotalRetriedCount)
}

// taskBecomesCompleted: there is no further attempt of the task.
func (t cursor) taskBecomesCompleted() {
	t.enter(frameworkv1.TaskCompleted).CompletionTime = t.d.timeNow()
}

// taskBecomesCompletedWithAttempt completes the task from any state, because the Framework's attempt and all its Pods
// are gone.
func (t cursor) taskBecomesCompletedWithAttempt() {
	task := t.edit()
	t.settle(task, taskCompletion(frameworkv1.CodeFrameworkAttemptCompletion,
		"The attempt of the Framework completed before this task did"))
	if task.AttemptStatus.CompletionTime == nil {
		task.AttemptStatus.CompletionTime = t.d.timeNow()
	}
	task.RetryPolicyStatus.RetryDelaySec = nil
	task.AttemptStatus.Waiting, task.AttemptStatus.PreparingSince = nil, nil
	task.State = frameworkv1.TaskCompleted
	task.TransitionTime = t.d.now
	task.CompletionTime = t.d.timeNow()
}

// settle records how the task's attempt ended, unless that is known already.
func (t cursor) settle(task *frameworkv1.TaskStatus, completion *frameworkv1.TaskAttemptCompletionStatus) {
	if task.AttemptStatus.CompletionStatus != nil {
		return
	}
	task.AttemptStatus.CompletionStatus = completion
	countEnd(&t.d.next.AttemptStatus.TaskAttempts, completion.CompletionStatus)
	if !succeeded(completion.CompletionStatus) {
		t.noteTaskFailure(task, completion.CompletionStatus)
	}
}

func (d *decision) timeNow() *metav1.Time {
	now := d.now
	return &now
}
