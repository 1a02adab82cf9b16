// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Command asks once for one action on one object in its namespace.
//
// +genclient
// +genclient:noStatus
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=commands,singular=command
// +kubebuilder:printcolumn:name="Action",type=string,JSONPath=`.action`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.target.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Command struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// action is what to do. An action that the target doesn't have is answered with a
	// Warning and does nothing.
	// +optional
	Action Action `json:"action,omitempty"`

	// target is the object of the action, in the Command's namespace. The uid has to be that of the present object of
	// the name.
	// +optional
	Target *metav1.OwnerReference `json:"target,omitempty"`

	// reason is a word for programs that says why. The reason becomes the reason of the target's state.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people that says why. The message becomes a part of the message of the target's state.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// CommandList is a list of Commands.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CommandList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Command `json:"items"`
}

// Action is what a policy of a Job, or a Command, asks for.
//
// +kubebuilder:validation:MaxLength=64
type Action string

// Actions on a Job. The effect of an action depends on the present phase.
const (
	// ActionAbortJob deletes the Pods that have not ended. The Job can be resumed.
	ActionAbortJob Action = "AbortJob"
	// ActionRestartJob deletes all Pods and creates them again.
	ActionRestartJob Action = "RestartJob"
	// ActionTerminateJob deletes the Pods that have not ended, for good.
	ActionTerminateJob Action = "TerminateJob"
	// ActionCompleteJob deletes the Pods that have not ended; the Job is done.
	ActionCompleteJob Action = "CompleteJob"
	// ActionResumeJob starts an aborted Job again.
	ActionResumeJob Action = "ResumeJob"
	// ActionRestartTask deletes the Pods of the event's task and creates them again. Only for policies.
	ActionRestartTask Action = "RestartTask"
	// ActionRestartPod deletes the event's Pod and creates the Pod again. Only for policies.
	ActionRestartPod Action = "RestartPod"
	// ActionRestartPartition deletes the Pods of the partition of the event's Pod and creates them again. Only for
	// policies.
	ActionRestartPartition Action = "RestartPartition"
)

// Event is something that happened to a Job, on which a policy may act.
type Event string

// Events that policies may name.
const (
	// EventAny stands for every event.
	EventAny Event = "*"
	// EventPodFailed is a Pod that ended Failed.
	EventPodFailed Event = "PodFailed"
	// EventPodEvicted is a Pod that another client deleted.
	EventPodEvicted Event = "PodEvicted"
	// EventPodPending is a Pod that has not run yet. Only policies with a timeout see this event.
	EventPodPending Event = "PodPending"
	// EventTaskCompleted is a task with succeeded Pods only.
	EventTaskCompleted Event = "TaskCompleted"
	// EventTaskFailed is a task with as many container restarts as its maxRetry.
	EventTaskFailed Event = "TaskFailed"
	// EventUnknown is a gang that lost members and has no room for replacements. The event belongs to no task.
	EventUnknown Event = "Unknown"
	// EventJobUpdated is taken and never happens.
	EventJobUpdated Event = "JobUpdated"
)

// Events that no policy may name.
const (
	// EventOutOfSync is a Job whose objects changed.
	EventOutOfSync Event = "OutOfSync"
	// EventCommandIssued is a Command for a Job; the reason of the event about this.
	EventCommandIssued Event = "CommandIssued"
	// EventPodRunning is a Pod that runs.
	EventPodRunning Event = "PodRunning"
)
