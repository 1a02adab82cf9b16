// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// RunPolicy says how a job of any kind is run, ended and cleaned up.
type RunPolicy struct {
	// cleanPodPolicy says which Pods and Services go when the job has ended: All, Running (Pods that have not ended
	// themselves) or None. Default None. Mutable.
	// +optional
	CleanPodPolicy *CleanPodPolicy `json:"cleanPodPolicy,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after the end the job is deleted, 0 at once. Default: the job is kept.
	// Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// activeDeadlineSeconds is how many seconds after status.startTime the job fails, 0 at
	// once. Default: never. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=9223372036
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// backoffLimit is how many restarts make the job fail: of containers in running Pods, and of Pods that were created
	// again after a failure. Types with restartPolicy Never don't count. 0 stands for the first restart or failure.
	// Default: no number does. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`

	// schedulingPolicy makes the Pods a gang, and says how to place the gang. Default: the Pods are a gang if a template
	// names the gang scheduler. Mutable.
	// +optional
	SchedulingPolicy *SchedulingPolicy `json:"schedulingPolicy,omitempty"`

	// suspend removes all Pods and Services, and creates them again when it is false again. A job that has ended does
	// not change. Default false. Mutable.
	// +optional
	// +default=false
	// +kubebuilder:default=false
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller of the job. Default: the operator's that takes all. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Enum="";lockstep.dev/kubeflow;kubeflow.org/training-operator;kueue.x-k8s.io/multikueue
	ManagedBy *string `json:"managedBy,omitempty"`
}

// CleanPodPolicy says which Pods go when a job has ended.
//
// +enum
// +kubebuilder:validation:Enum="";All;Running;None
type CleanPodPolicy string

const (
	// CleanPodPolicyAll takes all Pods and Services.
	CleanPodPolicyAll CleanPodPolicy = "All"
	// CleanPodPolicyRunning deletes Pods that have not ended, and their Services.
	CleanPodPolicyRunning CleanPodPolicy = "Running"
	// CleanPodPolicyNone leaves all Pods and Services.
	CleanPodPolicyNone CleanPodPolicy = "None"
)

// SchedulingPolicy says how the Pods of a job are placed.
type SchedulingPolicy struct {
	// minAvailable is how many Pods are placed together or not at all. The minimum may exceed the replicas: then the
	// gang waits. Default: all replicas, or with an elasticPolicy the fewest. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// queue is recorded in the gang. Default "default". Immutable once set.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// minResources is recorded with the gang and has no effect: what Pods request counts.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	MinResources map[corev1.ResourceName]Amount `json:"minResources,omitempty"`

	// priorityClass ranks the gang among others, and is the class of Pods with a template that names none. A change
	// counts for the Pods of the next start.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	PriorityClass string `json:"priorityClass,omitempty"`

	// scheduleTimeoutSeconds is recorded and has no effect: nothing is held while a gang
	// waits.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`
}

// Amount is a quantity as written, as a number or a text. Amounts are never read as quantities: one with a long
// exponent would take for ever.
//
// +kubebuilder:validation:Type=""
// +kubebuilder:validation:XIntOrString
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?$`
type Amount string

// UnmarshalJSON keeps what a text says, and of anything else the JSON.
func (a *Amount) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		text = string(data)
	}
	*a = Amount(text)
	return nil
}

// ReplicaSpec is a type of replicas: how many there are, and what each runs.
type ReplicaSpec struct {
	// replicas is how many Pods there are, with indexes from 0. Default 1. Mutable: the
	// highest indexes come and go.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas *int32 `json:"replicas,omitempty"`

	// template is a v1 PodTemplateSpec with metadata and spec. The template is stored as written, so that fields of any
	// version of Kubernetes survive. At least one container is needed. Mutable: a change counts for Pods that are made
	// later.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template"`

	// restartPolicy says what to do when a Pod ends: Always, OnFailure, Never or ExitCode. With ExitCode, a Pod
	// that fails with a code of 128 or more is made anew, and a lower code fails the job. The field takes precedence over the template's.
	// Default: Never, but OnFailure of a PyTorchJob or PaddleJob. TFJobs of v1alpha2 go by the template's instead.
	// Mutable: a change counts for Pods that end, or are created, later.
	// +optional
	RestartPolicy RestartPolicy `json:"restartPolicy,omitempty"`
}

// RestartPolicy says what to do when a Pod ends.
//
// +enum
// +kubebuilder:validation:Enum="";Always;OnFailure;Never;ExitCode
type RestartPolicy string

const (
	// RestartAlways: containers are restarted in place, Pods that fail are made anew.
	RestartAlways RestartPolicy = "Always"
	// RestartOnFailure: containers that fail are restarted in place, Pods that fail are
	// made anew.
	RestartOnFailure RestartPolicy = "OnFailure"
	// RestartNever: a Pod that fails stays so.
	RestartNever RestartPolicy = "Never"
	// RestartExitCode: a Pod that fails with a code from 128 on is made anew.
	RestartExitCode RestartPolicy = "ExitCode"
)
