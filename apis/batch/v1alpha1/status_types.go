// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// JobStatus is what the controller has observed of a Job and decided.
type JobStatus struct {
	// state is where the Job is in its life.
	// +optional
	State JobState `json:"state,omitzero"`

	// minAvailable is the minimum in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinAvailable int32 `json:"minAvailable"`

	// pending is how many Pods wait for a node or for their containers.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Pending int32 `json:"pending"`

	// running is how many Pods run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Running int32 `json:"running"`

	// succeeded is how many Pods have succeeded, also if they are gone by now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Succeeded int32 `json:"succeeded"`

	// failed is how many Pods have failed, also if they are gone by now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Failed int32 `json:"failed"`

	// terminating is how many Pods are being deleted. They count nowhere else.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Terminating int32 `json:"terminating"`

	// unknown is how many Pods have a node that is not heard from.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Unknown int32 `json:"unknown"`

	// taskStatusCount has the Pods by task and phase, those that are being deleted
	// excepted.
	// +optional
	TaskStatusCount map[string]TaskState `json:"taskStatusCount,omitempty"`

	// version is new with each action on the whole Job. Only its order means something.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Version int32 `json:"version"`

	// retryCount is how often the Job, or a part of it, was restarted or resumed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	RetryCount int32 `json:"retryCount"`

	// runningDuration is how long the Job took from its creation to its end, or until
	// it was aborted.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
	RunningDuration *metav1.Duration `json:"runningDuration,omitempty"`

	// controlledResources names what plugins and volumes have made.
	// +optional
	ControlledResources map[string]string `json:"controlledResources,omitempty"`

	// conditions say when the Job last entered each of the phases that it was in, in
	// that order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Conditions []JobCondition `json:"conditions,omitempty"`
}

// JobState is where a Job is in its life.
type JobState struct {
	// phase sums it up.
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// reason is a word for programs that says why.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people that says why.
	// +optional
	Message string `json:"message,omitempty"`

	// lastTransitionTime is when the phase last changed, as RFC 3339 has it, with T and
	// Z in upper case: API servers take other forms for a time that clients can't read.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
}

// JobPhase sums up where a Job is in its life. Phases whose names end in -ing, Pending
// and Running excepted, last until the Pods that the controller deletes are gone.
//
// +enum
// +kubebuilder:validation:Enum=Pending;Running;Restarting;Aborting;Aborted;Terminating;Terminated;Completing;Completed;Failed
type JobPhase string

const (
	// JobPending: fewer than minAvailable Pods run or have ended. The start. Exits:
	// Running; Restarting, Aborting, Terminating, Completing by an action.
	JobPending JobPhase = "Pending"
	// JobRunning: minAvailable Pods run or have ended. Exits: Completed and Failed at
	// the natural end; Pending, when too many wait, or the spec makes no sense any more;
	// Restarting, Aborting, Terminating, Completing by an action.
	JobRunning JobPhase = "Running"
	// JobRestarting: Pods go and are made again. Exits: Failed, when there were too
	// many restarts; Pending; Aborting, Terminating, Completing by an action.
	JobRestarting JobPhase = "Restarting"
	// JobAborting: Pods go, the Job may be resumed. Exits: Aborted; Restarting, when
	// resumed.
	JobAborting JobPhase = "Aborting"
	// JobAborted: no Pod is left that has not ended. Exit: Restarting, when resumed.
	JobAborted JobPhase = "Aborted"
	// JobTerminating: Pods go for good. Exit: Terminated.
	JobTerminating JobPhase = "Terminating"
	// JobTerminated: it was stopped. Final.
	JobTerminated JobPhase = "Terminated"
	// JobCompleting: the work is done, other Pods go. Exit: Completed.
	JobCompleting JobPhase = "Completing"
	// JobCompleted: the work is done. Final.
	JobCompleted JobPhase = "Completed"
	// JobFailed: too many restarts, or too few successes. Final.
	JobFailed JobPhase = "Failed"
)

// TaskState counts the Pods of a task.
type TaskState struct {
	// phase has the number of Pods in each phase that some are in.
	// +optional
	Phase map[corev1.PodPhase]int32 `json:"phase,omitempty"`
}

// JobCondition is when the Job last entered a phase.
type JobCondition struct {
	// status is the phase.
	// +required
	Status JobPhase `json:"status"`

	// lastTransitionTime is when it was entered.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
}
