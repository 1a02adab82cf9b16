// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// FrameworkStatus is what the controller has observed and decided. Null
// pointers are written as null, as FrameworkController does. Times have the
// precision of one second.
type FrameworkStatus struct {
	// observedGeneration is the metadata.generation of the spec that the last
	// decision saw.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when the controller first saw the Framework.
	// +optional
	// +nullable
	StartTime metav1.Time `json:"startTime"`

	// runTime is when any attempt first ran. The UID stays over retries.
	// +optional
	// +nullable
	RunTime *metav1.Time `json:"runTime"`

	// completionTime is when the Framework became Completed.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// state is the state of the Framework's life.
	// +optional
	State FrameworkState `json:"state"`

	// transitionTime is when state last changed. Retry delays, creation time-outs and retention run from this time; gang
	// time-outs from podGroup.
	// +optional
	// +nullable
	TransitionTime metav1.Time `json:"transitionTime"`

	// retryPolicyStatus counts the retries of the Framework.
	// +optional
	RetryPolicyStatus RetryPolicyStatus `json:"retryPolicyStatus"`

	// attemptStatus is the current or the last attempt.
	// +optional
	AttemptStatus FrameworkAttemptStatus `json:"attemptStatus"`

	// tasks counts the tasks of the current attempt. The counts hold also when the task statuses are compressed.
	// +optional
	Tasks *TaskCounts `json:"tasks,omitempty"`

	// waiting says for what tasks of the current attempt wait that have a Pod that
	// does not run: at most 8 reasons, the most frequent first. Further ones count
	// under the reason Other.
	// +optional
	// +listType=atomic
	Waiting []WaitingCount `json:"waiting,omitempty"`

	// history are the last attempts that are over, the oldest first, at most frameworkHistoryLimit of the configuration,
	// which is 10 by default. The history has an attempt from its state AttemptCompleted on. Conditions are for people
	// and programs: no decision depends on conditions.
	// +optional
	// +listType=atomic
	History []AttemptRecord `json:"history,omitempty"`

	// conditions summarise the status for people and generic tools. Those of types
	// that the controller does not know are kept: others may add theirs, by an
	// update or a patch of the status.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// Types of FrameworkStatus.Conditions. Every Framework has Running and Completed; the others exist only when they
// have something to say.
const (
	// ConditionRunning is True while a task of the attempt runs.
	ConditionRunning = "Running"
	// ConditionCompleted is True once the state is Completed, with the reason
	// Succeeded or Failed.
	ConditionCompleted = "Completed"
	// ConditionTasksBlocked is True while Pods of tasks, or the ConfigMap or the PodGroup of the attempt, are refused by
	// the API server, and are tried again; or while a Pod stays after its deletion, although another is to take its
	// place.
	ConditionTasksBlocked = "TasksBlocked"
	// ConditionGangScheduled mirrors the PodGroup's condition Scheduled. Only Frameworks that are gangs have this
	// condition.
	ConditionGangScheduled = "GangScheduled"
	// ConditionAdmitted is True while Kueue admits the Framework. Only Frameworks in queues have this condition.
	ConditionAdmitted = "Admitted"
	// ConditionUnknownFields is True while a Pod template has fields that the API server does not know, such as mistyped
	// ones: the API server drops such fields at the creation of the Pods.
	ConditionUnknownFields = "UnknownFields"
	// ConditionStatusTooLarge is True while the status is too large to be stored, and is stored with cut diagnostics.
	ConditionStatusTooLarge = "StatusTooLarge"
)

// Reasons of ConditionCompleted, when it is True.
const (
	// ReasonSucceeded: the last attempt succeeded.
	ReasonSucceeded = "Succeeded"
	// ReasonFailed: the last attempt failed and is not retried.
	ReasonFailed = "Failed"
)

// ReasonNotAdmissible is the reason of ConditionAdmitted when it is False because the Framework can't be in the
// queue. The Framework waits until it, or what the message names, is changed. While an admission is possible, the
// reason is InQueue.
const ReasonNotAdmissible = "NotAdmissible"

// Reasons of ConditionTasksBlocked, when it is True.
const (
	// ReasonNameTaken: an object that is not the Framework's has the name of a Pod, or
	// of the attempt's ConfigMap or PodGroup. The message names the object.
	ReasonNameTaken = "NameTaken"
	// ReasonQuotaExceeded: a ResourceQuota of the namespace has no room.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonPriorityClassNotFound: the PriorityClass of a Pod or of the gang
	// does not exist.
	ReasonPriorityClassNotFound = "PriorityClassNotFound"
	// ReasonUnknownFields: the Pod template has fields that the API server does not know, and the controller is set to
	// create no Pods from such templates. This is also the reason of ConditionUnknownFields.
	ReasonUnknownFields = "UnknownFields"
	// ReasonCreationRefused: the API server, or an admission webhook, refuses the
	// object for another reason.
	ReasonCreationRefused = "CreationRefused"
	// ReasonWaiting: the deletion of a Pod takes a minute longer than the grace period, because of a finalizer or a node
	// that does not answer. The message names the Pod, the node, and since when.
	ReasonWaiting = "Waiting"
)

// TaskCounts counts tasks. Each task is counted in total and in exactly one of the others; tasks that a rescale
// deletes are left out.
type TaskCounts struct {
	// total is the number of tasks.
	// +optional
	Total int32 `json:"total"`
	// pending tasks have no running Pod and have not completed, including tasks that wait for a retry.
	// +optional
	Pending int32 `json:"pending"`
	// running tasks have a running Pod.
	// +optional
	Running int32 `json:"running"`
	// succeeded tasks ended and the end was a success.
	// +optional
	Succeeded int32 `json:"succeeded"`
	// failed tasks ended in a failure that is not retried.
	// +optional
	Failed int32 `json:"failed"`
}

// RetryPolicyStatus counts the retries of a Framework or a Task.
type RetryPolicyStatus struct {
	// totalRetriedCount is how many retries there were. The number equals the id of the current attempt.
	// +optional
	TotalRetriedCount int32 `json:"totalRetriedCount"`

	// accountableRetriedCount is how many of these count against maxRetryCount: all but the Transient failures of a
	// fancy retry policy.
	// +optional
	AccountableRetriedCount int32 `json:"accountableRetriedCount"`

	// retryDelaySec is how many seconds after transitionTime the scheduled
	// retry starts. Null unless a retry is scheduled.
	// +optional
	// +nullable
	RetryDelaySec *int64 `json:"retryDelaySec"`

	// backoffSec is the back-off, in seconds, that the last attempt in a row was followed by, from which retryDelaySec
	// was drawn: an attempt that could not create a Pod, that ended within a second, or that failed with Transient under
	// a fancy retry policy. Memory of the controller: the next delay doubles this. 0 after any other attempt.
	// +optional
	BackoffSec int64 `json:"backoffSec,omitempty"`
}

// FrameworkAttemptStatus is one attempt of a Framework.
type FrameworkAttemptStatus struct {
	// id numbers the attempts of a Framework from 0.
	// +optional
	ID int32 `json:"id"`

	// startTime is when the attempt was begun.
	// +optional
	// +nullable
	StartTime metav1.Time `json:"startTime"`

	// runTime is when the first task ran.
	// +optional
	// +nullable
	RunTime *metav1.Time `json:"runTime"`

	// completionTime is when the attempt became AttemptCompleted.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// instanceUID is {id}_{configMapUID}, unique over all attempts of all
	// Frameworks.
	// +optional
	// +nullable
	InstanceUID *types.UID `json:"instanceUID"`

	// configMapName is {framework}-attempt.
	// +optional
	ConfigMapName string `json:"configMapName"`

	// configMapUID is the ConfigMap that is this attempt: while the ConfigMap exists, the attempt does.
	// +optional
	// +nullable
	ConfigMapUID *types.UID `json:"configMapUID"`

	// completionStatus is how the attempt ended. The value does not change within the attempt.
	// +optional
	// +nullable
	CompletionStatus *FrameworkAttemptCompletionStatus `json:"completionStatus"`

	// taskAttempts counts the attempts of tasks that ended or were retried in this attempt.
	// +optional
	TaskAttempts TaskAttemptCounts `json:"taskAttempts,omitzero"`

	// gang is what was decided about gang scheduling when the attempt began. Memory of the controller: the decision
	// holds until the attempt ends, whatever happens to spec.gang. Absent until the attempt begins, so while
	// executionType is Create, and in attempts of older versions that are over.
	// +optional
	Gang *AttemptGangStatus `json:"gang,omitempty"`

	// podGroup is the attempt's PodGroup as last seen. The copy stays after the attempt until the next one starts. Only
	// gangs have this.
	// +optional
	PodGroup *AttemptPodGroupStatus `json:"podGroup,omitempty"`

	// runtimeLimit is the limit of the attempt's run time, with the start of the count. Memory of the controller:
	// gang.maxRuntimeSeconds runs from this time. Absent without a limit.
	// +optional
	RuntimeLimit *schedulingv1alpha1.RuntimeLimit `json:"runtimeLimit,omitempty"`

	// taskRoleStatuses are the roles of the attempt, in no particular order.
	// Null when compressed.
	// +optional
	// +nullable
	// +listType=atomic
	TaskRoleStatuses []*TaskRoleStatus `json:"taskRoleStatuses"`

	// taskRoleStatusesCompressed is taskRoleStatuses as gzipped JSON, used in its place from a size of 700 KiB.
	// +optional
	// +nullable
	TaskRoleStatusesCompressed []byte `json:"taskRoleStatusesCompressed,omitempty"`
}

// AttemptGangStatus is what was decided about gang scheduling when an attempt
// began.
type AttemptGangStatus struct {
	// enabled is true if the attempt is a gang: the attempt has a PodGroup, and the Pods are the members.
	// +optional
	Enabled bool `json:"enabled"`
	// schedulerName is the scheduler of Pods with a template that names none. Empty if a template made the attempt a
	// gang.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
	// priorityClassName is the PriorityClass of the PodGroup, and of Pods with a template that names none. Empty if the
	// gang names none.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// AttemptPodGroupStatus is a copy of what matters of an attempt's PodGroup.
type AttemptPodGroupStatus struct {
	// name of the PodGroup; see PodGroupName.
	// +optional
	Name string `json:"name"`
	// uid of the PodGroup. The UID changes when the PodGroup was deleted and created again.
	// +optional
	UID types.UID `json:"uid"`
	// creationTime is when the controller first saw a PodGroup of the attempt, by the controller's own clock. Memory of
	// the controller: scheduleTimeoutSeconds runs from this time.
	// +optional
	// +nullable
	CreationTime *metav1.Time `json:"creationTime,omitempty"`
	// phase of the PodGroup.
	// +optional
	Phase schedulingv1alpha1.PodGroupPhase `json:"phase,omitempty"`
	// unknownSince is since when a scheduled gang is short of lost members without room for replacements. Null
	// otherwise. Memory of the controller: recoveryTimeoutSeconds runs from this time.
	// +optional
	// +nullable
	UnknownSince *metav1.Time `json:"unknownSince,omitempty"`
	// minMember in force.
	// +optional
	MinMember int32 `json:"minMember"`
	// scheduled is how many members are placed on nodes.
	// +optional
	Scheduled int32 `json:"scheduled"`
	// running is how many members run.
	// +optional
	Running int32 `json:"running"`
	// everScheduled is true once the gang was scheduled in this attempt. Memory
	// of the controller: scheduleTimeoutSeconds counts no more then.
	// +optional
	EverScheduled bool `json:"everScheduled,omitempty"`
	// unschedulable says why the gang waits. Null when it does not run.
	// +optional
	// +nullable
	Unschedulable *AttemptUnschedulable `json:"unschedulable,omitempty"`
	// expectedStart is when the gang is expected to be scheduled, while it waits. Absent if nothing is known.
	// +optional
	ExpectedStart *schedulingv1alpha1.ExpectedStart `json:"expectedStart,omitempty"`
}

// AttemptUnschedulable says why a gang waits.
type AttemptUnschedulable struct {
	// reason is a word for programs.
	// +optional
	Reason string `json:"reason"`
	// message is a sentence for people.
	// +optional
	Message string `json:"message"`
	// since is when the gang began to wait.
	// +optional
	// +nullable
	Since metav1.Time `json:"since"`
}

// TaskRoleStatus is one role of an attempt.
type TaskRoleStatus struct {
	// name of the role.
	// +optional
	Name string `json:"name"`

	// instanceUID is unique to this role in this attempt.
	// +optional
	InstanceUID types.UID `json:"instanceUID"`

	// podGracefulDeletionTimeoutSec is the value of the spec in force. Memory of the controller: the value outlives the
	// role in the spec.
	// +optional
	// +nullable
	PodGracefulDeletionTimeoutSec *int64 `json:"podGracefulDeletionTimeoutSec"`

	// taskStatuses are the tasks of the role, in the order of the index. A task has index, instanceUID, startTime,
	// runTime, completionTime, state, transitionTime, deletionPending, retryPolicyStatus and attemptStatus; an
	// attemptStatus has id, startTime, runTime, completionTime, instanceUID, podName, podUID, podNodeName, podIP,
	// podHostIP, completionStatus, waiting and preparingSince.
	// ---
	// The fields of a task have no schema: to check those of a thousand takes the API
	// server several times as long as all else that a write of the status costs. See
	// docs/adr/0011-tasks-in-the-status-have-no-schema.md. No marker says so of the
	// items of an array: hack/generate.sh does.
	// +optional
	// +nullable
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=array
	TaskStatuses []*TaskStatus `json:"taskStatuses"`
}

// TaskStatus is one task.
type TaskStatus struct {
	// index of the task in the role, from 0.
	// +optional
	Index int32 `json:"index"`

	// instanceUID is unique to this task in this Framework attempt. The UID stays over retries of the task and changes
	// when a rescale replaces the task.
	// +optional
	InstanceUID types.UID `json:"instanceUID"`

	// startTime is when the task was first planned.
	// +optional
	// +nullable
	StartTime metav1.Time `json:"startTime"`

	// runTime is when the task first ran.
	// +optional
	// +nullable
	RunTime *metav1.Time `json:"runTime"`

	// completionTime is when the task became Completed.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// state is the state of the task's life.
	// +optional
	State TaskState `json:"state"`

	// transitionTime is when state last changed.
	// +optional
	// +nullable
	TransitionTime metav1.Time `json:"transitionTime"`

	// deletionPending marks a task that a rescale deletes. Never unmarked.
	// +optional
	DeletionPending bool `json:"deletionPending"`

	// retryPolicyStatus counts the retries of the task.
	// +optional
	RetryPolicyStatus RetryPolicyStatus `json:"retryPolicyStatus"`

	// attemptStatus is the current or the last attempt of the task.
	// +optional
	AttemptStatus TaskAttemptStatus `json:"attemptStatus"`
}

// TaskAttemptStatus is one attempt of a task: one Pod.
type TaskAttemptStatus struct {
	// id numbers the attempts of a task from 0.
	// +optional
	ID int32 `json:"id"`

	// startTime is when the attempt was begun.
	// +optional
	// +nullable
	StartTime metav1.Time `json:"startTime"`

	// runTime is when the Pod was first seen running; for an adopted Pod that ran, the Pod's own start, but not before
	// startTime.
	// +optional
	// +nullable
	RunTime *metav1.Time `json:"runTime"`

	// completionTime is when the attempt became AttemptCompleted.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// instanceUID is {id}_{podUID}.
	// +optional
	// +nullable
	InstanceUID *types.UID `json:"instanceUID"`

	// podName is {framework}-{role}-{index}.
	// +optional
	PodName string `json:"podName"`

	// podUID is the Pod that is this attempt.
	// +optional
	// +nullable
	PodUID *types.UID `json:"podUID"`

	// podNodeName is the node of the Pod, empty before scheduling.
	// +optional
	// +nullable
	PodNodeName *string `json:"podNodeName"`

	// podIP is the address of the Pod, empty before there is one. The address stays after completion.
	// +optional
	// +nullable
	PodIP *string `json:"podIP"`

	// podHostIP is the address of the Pod's node.
	// +optional
	// +nullable
	PodHostIP *string `json:"podHostIP"`

	// completionStatus is how the attempt ended.
	// +optional
	// +nullable
	CompletionStatus *TaskAttemptCompletionStatus `json:"completionStatus"`

	// waiting says why the Pod does not run yet. Absent unless the task is
	// AttemptPreparing, and in the first 10 seconds of that.
	// +optional
	Waiting *TaskWaiting `json:"waiting,omitempty"`

	// preparingSince is since when preparingTimeoutSeconds of the role runs. Memory of
	// the controller. Absent unless the role has one and the task is AttemptPreparing;
	// and in a gang as long as the Pod has no node.
	// +optional
	PreparingSince *metav1.Time `json:"preparingSince,omitempty"`
}
