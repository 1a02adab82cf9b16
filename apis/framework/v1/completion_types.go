// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

// CompletionType is how an attempt ended: Succeeded or Failed, and what the
// failure is known to be.
type CompletionType struct {
	// name is Succeeded or Failed.
	// +optional
	Name CompletionTypeName `json:"name"`
	// attributes say what a failure is known to be. A failure without attributes is of unknown nature.
	// +optional
	// +nullable
	// +listType=atomic
	Attributes []CompletionTypeAttribute `json:"attributes"`
}

// CompletionTypeName is Succeeded or Failed.
type CompletionTypeName string

// Names of completion types.
const (
	CompletionTypeSucceeded CompletionTypeName = "Succeeded"
	CompletionTypeFailed    CompletionTypeName = "Failed"
)

// CompletionTypeAttribute says what a failure is known to be.
type CompletionTypeAttribute string

// Attributes of a failure.
const (
	// AttributeTransient failures are likely to be gone in the next attempt.
	AttributeTransient CompletionTypeAttribute = "Transient"
	// AttributePermanent failures are bound to happen again.
	AttributePermanent CompletionTypeAttribute = "Permanent"
	// AttributeConflict failures come from competing for resources: the next
	// attempt waits a random time.
	AttributeConflict CompletionTypeAttribute = "Conflict"
)

// CompletionStatus is how an attempt ended.
type CompletionStatus struct {
	// code of the end; see CompletionCode.
	// +optional
	Code CompletionCode `json:"code"`
	// phrase is the code's name.
	// +optional
	Phrase string `json:"phrase"`
	// type of the end, on which retries are decided.
	// +optional
	Type CompletionType `json:"type"`
	// diagnostics say more, for people. Those of a failed Pod end in one line
	// of JSON.
	// +optional
	Diagnostics string `json:"diagnostics"`
	// disruption is why a Pod ended that did not fail by itself: Preempted, NodeLost, Evicted or Refused. Absent if the
	// Pod failed by itself, or the cause is not known. For a Framework it is that of the task that ended the attempt.
	// +optional
	Disruption Disruption `json:"disruption,omitempty"`
}

// TaskAttemptCompletionStatus is how an attempt of a task ended.
type TaskAttemptCompletionStatus struct {
	CompletionStatus `json:",inline"`
	// pod is how the Pod ended, if the end was seen.
	// +optional
	Pod *PodCompletionStatus `json:"pod,omitempty"`
}

// FrameworkAttemptCompletionStatus is how an attempt of a Framework ended.
type FrameworkAttemptCompletionStatus struct {
	CompletionStatus `json:",inline"`
	// trigger is the task that completed the attempt, if one did.
	// +optional
	Trigger *CompletionPolicyTriggerStatus `json:"trigger,omitempty"`
}

// PodCompletionStatus is how a Pod ended.
type PodCompletionStatus struct {
	// reason is the Pod's status.reason.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message is the Pod's status.message.
	// +optional
	Message string `json:"message,omitempty"`
	// containers are the init containers and then the others.
	// +optional
	// +listType=atomic
	Containers []*ContainerCompletionStatus `json:"containers,omitempty"`
}

// ContainerCompletionStatus is how a container ended. A container that did not end has code 0.
type ContainerCompletionStatus struct {
	// name of the container.
	// +optional
	Name string `json:"name"`
	// reason of the end.
	// +optional
	Reason string `json:"reason,omitempty"`
	// message of the end.
	// +optional
	Message string `json:"message,omitempty"`
	// signal of the end.
	// +optional
	Signal int32 `json:"signal,omitempty"`
	// code is the exit code.
	// +optional
	Code int32 `json:"code"`
}

// CompletionPolicyTriggerStatus is the task that completed an attempt.
type CompletionPolicyTriggerStatus struct {
	// message names the rule and the counts.
	// +optional
	Message string `json:"message"`
	// taskRoleName is the role of the task.
	// +optional
	TaskRoleName string `json:"taskRoleName"`
	// taskIndex is the index of the task.
	// +optional
	TaskIndex int32 `json:"taskIndex"`
}
