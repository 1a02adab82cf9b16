// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Plan is a decision about a Framework, as data. If the written status is invalid, the Plan has the same status and no
// actions.
type Plan struct {
	plan.Plan[frameworkv1.FrameworkStatus]
	// History are objects to log before Status is written, because the write overwrites them.
	History []History
}

// Kinds of objects in actions.
const (
	KindFramework = frameworkv1.FrameworkKind
	KindConfigMap = "ConfigMap"
	KindPodGroup  = "PodGroup"
	KindPod       = "Pod"
)

// taskTag is the Tag of an action on the Pod of a task.
type taskTag struct {
	role  string
	index int32
}

// History is an object about to be overwritten or deleted, and why.
type History struct {
	Trigger HistoryTrigger
	// Framework with the status to log.
	Framework *frameworkv1.Framework
	// TaskRole and Task are set if a task is the object.
	TaskRole *frameworkv1.TaskRoleStatus
	Task     *frameworkv1.TaskStatus
}

// HistoryTrigger is why an object is logged.
type HistoryTrigger string

// Triggers, as in the log.
const (
	OnFrameworkRetry    HistoryTrigger = "OnFrameworkRetry"
	OnFrameworkDeletion HistoryTrigger = "OnFrameworkDeletion"
	OnTaskRetry         HistoryTrigger = "OnTaskRetry"
	OnTaskDeletion      HistoryTrigger = "OnTaskDeletion"
)

// Reasons of events.
const (
	// ReasonAttemptStarted: an attempt has begun, and its objects are about to be made.
	ReasonAttemptStarted = "AttemptStarted"
	// ReasonAttemptRunning: a task of the attempt runs.
	ReasonAttemptRunning = "AttemptRunning"
	// ReasonAttemptCompleted: the attempt is over, and the message says with which code.
	ReasonAttemptCompleted = "AttemptCompleted"
	// ReasonRetryScheduled: another attempt follows, and the message says when.
	ReasonRetryScheduled = "RetryScheduled"
	// ReasonCompleted: the Framework is over. No attempt follows.
	ReasonCompleted = "Completed"
	// ReasonTaskFailed: an attempt of a task has failed, and the message says how.
	ReasonTaskFailed = "TaskFailed"
	// ReasonRescaled: tasks were added, or are to be deleted.
	ReasonRescaled = "Rescaled"
	// ReasonLowerPriorityClass: the template of a role names a lower PriorityClass
	// than the gang does.
	ReasonLowerPriorityClass = "LowerPriorityClass"
	// ReasonNotAdmissible: the Framework can't be in its queue of Kueue, and the message says why.
	ReasonNotAdmissible = "NotAdmissible"
)
