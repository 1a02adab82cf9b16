// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AttemptRecord is an attempt of a Framework that is over, in few bytes. Once written, a record does not change,
// except for retry.
type AttemptRecord struct {
	// id is the number of the attempt.
	// +optional
	ID int32 `json:"id"`

	// startTime is when the attempt was begun.
	// +optional
	// +nullable
	StartTime metav1.Time `json:"startTime"`

	// runTime is when the first task ran. Absent if none did.
	// +optional
	RunTime *metav1.Time `json:"runTime,omitempty"`

	// completionTime is when the attempt was over and all Pods were gone.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// completionStatus is how the attempt ended, with at most 256 bytes of diagnostics. The trigger is the task that
	// ended the attempt, if one did.
	// +optional
	CompletionStatus FrameworkAttemptCompletionStatus `json:"completionStatus"`

	// tasks counts the tasks at the end. Tasks that ended because the attempt did count as failed; taskAttempts counts
	// how many failed by themselves.
	// +optional
	Tasks TaskCounts `json:"tasks"`

	// taskAttempts counts the attempts of tasks that ended or were retried in this attempt.
	// +optional
	TaskAttempts TaskAttemptCounts `json:"taskAttempts,omitzero"`

	// retry says that another attempt has followed. Absent before, and if none does.
	// +optional
	Retry *AttemptRetry `json:"retry,omitempty"`
}

// AttemptRetry says how an attempt was followed by another.
type AttemptRetry struct {
	// accountable says whether the retry counts against maxRetryCount.
	// +optional
	Accountable bool `json:"accountable"`
	// delaySec is the delay in seconds.
	// +optional
	DelaySec int64 `json:"delaySec"`
}

// TaskAttemptCounts counts attempts of tasks in one attempt of a Framework: attempts that did not succeed, by cause,
// and attempts that were followed by another. An attempt that ended because the Framework's did, or because the user
// stopped it or scaled it down, is counted nowhere. Absent numbers are 0.
type TaskAttemptCounts struct {
	// retries is how many attempts were followed by another of the same task.
	// +optional
	Retries int32 `json:"retries,omitempty"`
	// failures is how many failed by themselves: a container did, or the Pod was
	// refused, or could not run.
	// +optional
	Failures int32 `json:"failures,omitempty"`
	// preemptions is how many gave way to Pods of a higher priority.
	// +optional
	Preemptions int32 `json:"preemptions,omitempty"`
	// nodeLosses is how many were lost with the node.
	// +optional
	NodeLosses int32 `json:"nodeLosses,omitempty"`
	// evictions is how many were evicted from a node: by a drain, or because the node
	// ran short of something.
	// +optional
	Evictions int32 `json:"evictions,omitempty"`
	// deletions is how many ended by a deletion of the Pod without a known cause.
	// +optional
	Deletions int32 `json:"deletions,omitempty"`
}

// Disruption is why a Pod ended that did not fail by itself.
type Disruption string

// Disruptions, by the Pod's condition DisruptionTarget, or its status.reason.
const (
	// DisruptionPreempted: the Pod gave way to Pods of a higher priority.
	DisruptionPreempted Disruption = "Preempted"
	// DisruptionNodeLost: the node was lost, or shut down, or has a taint that the Pod does not tolerate.
	DisruptionNodeLost Disruption = "NodeLost"
	// DisruptionEvicted: the Pod was evicted from the node: by a drain, or because the node ran short of something.
	DisruptionEvicted Disruption = "Evicted"
	// DisruptionRefused: the kubelet refused to start the Pod.
	DisruptionRefused Disruption = "Refused"
)

// TaskWaiting says why the Pod of a task does not run yet.
type TaskWaiting struct {
	// reason is a word for programs, from the Pod's status: Unschedulable, SchedulingGated, ImagePullBackOff,
	// ErrImagePull, CreateContainerConfigError, ContainerCreating, PodInitializing, and so on. At most 64 bytes. The
	// reason stays for at least a minute, unless the task is not AttemptPreparing any more.
	// +optional
	Reason string `json:"reason"`
	// since is when the task began to wait for this, as far as the controller saw.
	// +optional
	// +nullable
	Since metav1.Time `json:"since"`
}

// WaitingCount counts the tasks that wait for the same.
type WaitingCount struct {
	// reason is that of the tasks.
	// +optional
	Reason string `json:"reason"`
	// tasks is how many tasks wait for this reason.
	// +optional
	Tasks int32 `json:"tasks"`
	// since is when the first of these began to wait.
	// +optional
	// +nullable
	Since metav1.Time `json:"since"`
}

// ReasonOther is the reason under which WaitingCount counts all reasons that have no
// count of their own.
const ReasonOther = "Other"
