// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AttemptRecord is an attempt of a Framework that is over, in few bytes. Once it is
// there nothing of it changes, but that retry is added.
type AttemptRecord struct {
	// id is the number of the attempt.
	// +optional
	ID int32 `json:"id"`

	// startTime is when the attempt was begun.
	// +optional
	// +nullable
	StartTime metav1.Time `json:"startTime"`

	// runTime is when one of its tasks first ran. Absent if none did.
	// +optional
	RunTime *metav1.Time `json:"runTime,omitempty"`

	// completionTime is when the attempt was over and all its Pods were gone.
	// +optional
	// +nullable
	CompletionTime *metav1.Time `json:"completionTime"`

	// completionStatus is how the attempt ended, with at most 256 bytes of its
	// diagnostics. Its trigger is the task that ended it, if one did.
	// +optional
	CompletionStatus FrameworkAttemptCompletionStatus `json:"completionStatus"`

	// tasks counts the tasks at the end. Those that ended because the attempt did count
	// as failed; taskAttempts tells how many failed by themselves.
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
	// delaySec is how many seconds it had to wait.
	// +optional
	DelaySec int64 `json:"delaySec"`
}

// TaskAttemptCounts counts attempts of tasks in one attempt of a Framework: those that
// did not succeed, by why they ended, and those that were followed by another. An
// attempt that ended because the Framework's did, or because the user stopped it or
// scaled it down, is counted nowhere. Absent numbers are 0.
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
	// nodeLosses is how many were lost with their node.
	// +optional
	NodeLosses int32 `json:"nodeLosses,omitempty"`
	// evictions is how many were evicted from a node: by a drain, or because the node
	// ran short of something.
	// +optional
	Evictions int32 `json:"evictions,omitempty"`
	// deletions is how many ended because somebody deleted the Pod, and nothing tells why.
	// +optional
	Deletions int32 `json:"deletions,omitempty"`
}

// Disruption is why a Pod ended that did not fail by itself.
type Disruption string

// Disruptions, by the Pod's condition DisruptionTarget, or its status.reason.
const (
	// DisruptionPreempted: it gave way to Pods of a higher priority.
	DisruptionPreempted Disruption = "Preempted"
	// DisruptionNodeLost: its node was lost, or shut down, or has a taint that the Pod
	// does not tolerate.
	DisruptionNodeLost Disruption = "NodeLost"
	// DisruptionEvicted: it was evicted from its node: by a drain, or because the node ran
	// short of something.
	DisruptionEvicted Disruption = "Evicted"
	// DisruptionRefused: the kubelet of its node refused to start it.
	DisruptionRefused Disruption = "Refused"
)

// TaskWaiting says why the Pod of a task does not run yet.
type TaskWaiting struct {
	// reason is a word for programs, as the Pod's status has it: Unschedulable,
	// SchedulingGated, ImagePullBackOff, ErrImagePull, CreateContainerConfigError,
	// ContainerCreating, PodInitializing, and so on. At most 64 bytes. It stays for at
	// least a minute, unless the task is not AttemptPreparing any more.
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
	// tasks is how many tasks wait for it.
	// +optional
	Tasks int32 `json:"tasks"`
	// since is when the first of them began to.
	// +optional
	// +nullable
	Since metav1.Time `json:"since"`
}

// ReasonOther is the reason under which WaitingCount counts all reasons that have no
// count of their own.
const ReasonOther = "Other"
