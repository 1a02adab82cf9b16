// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// JobStatus is what the controller has observed of a job of any kind, and decided.
type JobStatus struct {
	// phase is a summary. For a job of v1 the phase follows the conditions.
	// +optional
	Phase JobPhase `json:"phase,omitempty"`

	// conditions describe the job's life. The latest change is the last condition.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Conditions []JobCondition `json:"conditions,omitempty"`

	// replicaStatuses count the Pods of each type. Jobs of v1alpha2 have
	// tfReplicaStatuses instead.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	ReplicaStatuses map[string]ReplicaStatus `json:"replicaStatuses,omitempty"`

	// tfReplicaStatuses are those of a TFJob of v1alpha2.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	TFReplicaStatuses map[string]ReplicaStatus `json:"tfReplicaStatuses,omitempty"`

	// startTime is when the job was first seen, or resumed. RFC 3339, with T and Z in
	// upper case.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job succeeded or failed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// lastReconcileTime is when all objects of the job were last compared with the spec, for jobs of v1alpha2.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	LastReconcileTime *metav1.Time `json:"lastReconcileTime,omitempty"`

	// starts is how often the job was begun: once, and once more with each resume. The Pods carry this number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Starts int32 `json:"starts,omitempty"`

	// services says by how many Services the Pods of this start are reached: PerJob, by a shared one. Absent: each has
	// its own. The decision was made at the beginning of the start.
	// +optional
	Services ServiceMode `json:"services,omitempty"`

	// runtimeLimit is the limit of the run time of this start, from when it counts: when as many
	// members run as are placed together. Absent without one.
	// +optional
	RuntimeLimit *schedulingv1alpha1.RuntimeLimit `json:"runtimeLimit,omitempty"`
}

// ServiceMode says by how many Services the Pods of a job are reached.
//
// +enum
// +kubebuilder:validation:Enum=PerReplica;PerJob
type ServiceMode string

const (
	// ServicesPerReplica: each Pod has a separate headless Service.
	ServicesPerReplica ServiceMode = "PerReplica"
	// ServicesPerJob: all share one.
	ServicesPerJob ServiceMode = "PerJob"
)

// JobPhase is a summary of a job's life.
//
// +enum
// +kubebuilder:validation:Enum=Pending;Running;Succeeded;Failed;Unknown
type JobPhase string

const (
	// JobPending: not all Pods and Services exist, or not all Pods have run; of a job of
	// v1, none that counts runs. Exits: all others.
	JobPending JobPhase = "Pending"
	// JobRunning: all Pods run or have succeeded; of a job of v1, a deciding Pod runs. Exits: all others.
	JobRunning JobPhase = "Running"
	// JobSucceeded: the job ended in success. Final.
	JobSucceeded JobPhase = "Succeeded"
	// JobFailed: the job ended, and not in success. Final.
	JobFailed JobPhase = "Failed"
	// JobUnknown: the node of a Pod is not heard from. Only of jobs of v1alpha2. Exits:
	// all others.
	JobUnknown JobPhase = "Unknown"
)

// JobCondition is one aspect of a job's life.
type JobCondition struct {
	// type is the aspect.
	// +required
	Type JobConditionType `json:"type"`

	// status is True, False or Unknown.
	// +required
	// +kubebuilder:validation:Enum="True";"False";Unknown
	Status corev1.ConditionStatus `json:"status"`

	// reason is a word for programs that says why: the kind and the type, as a rule.
	// +optional
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people that says why.
	// +optional
	Message string `json:"message,omitempty"`

	// lastUpdateTime is when status or reason last changed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// lastTransitionTime is when status last changed.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`
}

// JobConditionType is an aspect of a job's life.
//
// +enum
// +kubebuilder:validation:Enum=Created;Running;Restarting;Suspended;Succeeded;Failed
type JobConditionType string

const (
	// JobConditionCreated: the job was seen; of v1alpha2, all Pods and Services exist.
	JobConditionCreated JobConditionType = "Created"
	// JobConditionRunning: Pods that count run.
	JobConditionRunning JobConditionType = "Running"
	// JobConditionRestarting: a Pod is made anew.
	JobConditionRestarting JobConditionType = "Restarting"
	// JobConditionSuspended: the user has suspended the job.
	JobConditionSuspended JobConditionType = "Suspended"
	// JobConditionSucceeded: the job ended in success.
	JobConditionSucceeded JobConditionType = "Succeeded"
	// JobConditionFailed: the job ended in failure; of v1alpha2, the job will.
	JobConditionFailed JobConditionType = "Failed"
)

// ReplicaStatus counts the Pods of a type, and remembers the ends.
type ReplicaStatus struct {
	// active is how many Pods run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Active int32 `json:"active,omitempty"`

	// succeeded is how many Pods have succeeded, including Pods that are gone.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Succeeded int32 `json:"succeeded,omitempty"`

	// failed is how many Pods have failed, including Pods that are gone.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Failed int32 `json:"failed,omitempty"`

	// selector finds the Pods of the type, as a query of labels.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Selector string `json:"selector,omitempty"`

	// completedIndexes are the indexes that have succeeded and are not run again: "0-3,7".
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	CompletedIndexes string `json:"completedIndexes,omitempty"`

	// failedIndexes are the indexes that have failed and are not run again.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	FailedIndexes string `json:"failedIndexes,omitempty"`

	// restartingIndexes are the indexes with a Pod that is counted in restarts, and about to go.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	RestartingIndexes string `json:"restartingIndexes,omitempty"`

	// restarts is how often Pods were created again after a failure, and containers were restarted in Pods that are gone
	// or about to go.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Restarts int32 `json:"restarts,omitempty"`
}
