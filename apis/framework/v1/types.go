// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Framework is a distributed job: roles of tasks that start, complete and are
// retried together.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=frameworks,singular=framework,categories={all,lockstep}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Attempt",type=integer,JSONPath=`.status.attemptStatus.id`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.tasks.running`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.tasks.succeeded`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.tasks.failed`
// +kubebuilder:printcolumn:name="Total",type=integer,JSONPath=`.status.tasks.total`
// +kubebuilder:printcolumn:name="PodGroup",type=string,JSONPath=`.status.attemptStatus.podGroup.phase`
// +kubebuilder:printcolumn:name="Code",type=integer,priority=1,JSONPath=`.status.attemptStatus.completionStatus.code`
// +kubebuilder:printcolumn:name="Phrase",type=string,priority=1,JSONPath=`.status.attemptStatus.completionStatus.phrase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit, because it is a label value and the prefix of every Pod name"
type Framework struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes the spec.
	// +required
	Spec FrameworkSpec `json:"spec"`

	// status is what the controller has observed and decided. Null until the first sync. Only the controller writes the
	// status, through the status subresource.
	// ---
	// It is atomic: it has one writer, so nobody needs a record of who owns each of
	// its fields. To keep one costs the API server a fifth of the write of a small one.
	// +optional
	// +nullable
	// +structType=atomic
	Status *FrameworkStatus `json:"status,omitempty"`
}

// FrameworkList is a list of Frameworks.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type FrameworkList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Framework `json:"items"`
}

// FrameworkSpec is what the user wants of a Framework. Everything but taskRoles has a default. Everything may be
// changed while the Framework lives; each field says from when a change counts.
//
// +kubebuilder:validation:XValidation:rule="!has(self.gang) || !has(self.gang.minMember) || !has(self.taskRoles) || self.taskRoles.map(r, r.taskNumber).sum() == 0 || self.gang.minMember <= self.taskRoles.map(r, r.taskNumber).sum()",fieldPath=".gang.minMember",message="must be at most the number of tasks, which is the sum of taskNumber over spec.taskRoles: a larger gang could never start"
// +kubebuilder:validation:XValidation:rule="!has(self.taskRoles) || self.taskRoles.map(r, r.taskNumber).sum() <= 10000",fieldPath=".taskRoles",message="must have at most 10000 tasks in all, which is the sum of taskNumber over spec.taskRoles: the status of more can't be stored in one object"
type FrameworkSpec struct {
	// description is free text for people. Default empty. Mutable, without effect.
	// +optional
	// +nullable
	// +kubebuilder:validation:MaxLength=32768
	Description string `json:"description,omitempty"`

	// executionType says whether to create, start or stop the Framework.
	// Default Start. May change from Create to Start or Stop and from Start to
	// Stop; a change counts at once.
	// +optional
	// +default="Start"
	// +kubebuilder:default=Start
	// +kubebuilder:validation:XValidation:rule="self == oldSelf || oldSelf == 'Create' || (oldSelf == 'Start' && self == 'Stop')",messageExpression="'executionType cannot change from ' + oldSelf + ' to ' + self + ': only Create to Start, Create to Stop and Start to Stop are possible'"
	ExecutionType ExecutionType `json:"executionType,omitempty"`

	// retryPolicy decides whether a completed attempt of the whole Framework is
	// followed by another. Mutable; counts at the next decision.
	// +optional
	// +kubebuilder:default={}
	RetryPolicy RetryPolicySpec `json:"retryPolicy,omitzero"`

	// gang asks for the tasks of an attempt to be placed together. Unset, the Framework is a gang only if the template
	// of a role names the gang scheduler. Mutable; minMember, time-outs and run times count at once, all else from the
	// next attempt.
	// +optional
	Gang *GangSpec `json:"gang,omitempty"`

	// taskRoles are the kinds of tasks of the job, with at most 10000 tasks in all. Adding, removing and resizing roles
	// rescales a running Framework. A Framework without tasks never completes: the Framework is paused.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	TaskRoles []TaskRoleSpec `json:"taskRoles,omitempty"`
}

// MaxTasks is the most tasks that a Framework may have: the most that one role
// may have, and all roles together. The status of all of them is one object, and
// that of 10,000 can be stored when each of them runs and was retried, next
// to a spec of 128 KiB.
const MaxTasks = 10000

// ExecutionType is the user's wish for the life of a Framework.
//
// +enum
// +kubebuilder:validation:Enum=Create;Start;Stop
type ExecutionType string

const (
	// ExecutionCreate records the Framework and its tasks, but starts nothing. This gives time to create what the tasks
	// need, owned by the Framework.
	ExecutionCreate ExecutionType = "Create"
	// ExecutionStart runs the Framework. This is the default.
	ExecutionStart ExecutionType = "Start"
	// ExecutionStop completes the Framework with code -210 and never retries; the object stays until the retention ends.
	ExecutionStop ExecutionType = "Stop"
)

// RetryPolicySpec decides whether a completed attempt is followed by another.
// The same rules serve a Framework and a Task.
type RetryPolicySpec struct {
	// fancyRetryPolicy retries a Transient failure without counting, does not retry a Permanent one, and leaves only the
	// rest to maxRetryCount. Default false.
	// +optional
	// +default=false
	// +kubebuilder:default=false
	FancyRetryPolicy bool `json:"fancyRetryPolicy,omitempty"`

	// maxRetryCount bounds the retries that are counted: n >= 0 retries a
	// failure at most n times, -1 retries every failure, -2 retries always,
	// even a success. Default 0.
	// +optional
	// +default=0
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-2
	// +kubebuilder:validation:Maximum=2147483647
	MaxRetryCount int32 `json:"maxRetryCount,omitempty"`
}

const (
	// UnlimitedRetry as maxRetryCount retries every failed attempt.
	UnlimitedRetry int32 = -1
	// AlwaysRetry as maxRetryCount retries every attempt, even a succeeded one.
	AlwaysRetry int32 = -2
)

// GangSpec asks for the tasks of an attempt to be placed together or not at all. The gang becomes the spec of the
// attempt's PodGroup.
type GangSpec struct {
	// minMember is how many tasks must be placed together, from 1 to the
	// number of tasks. Default: all tasks. Mutable; a change reaches the
	// running attempt's PodGroup.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MinMember *int32 `json:"minMember,omitempty"`

	// scheduleTimeoutSeconds completes an attempt with code -130 when the PodGroup was not scheduled in this number of
	// seconds after the controller first saw it. Default: the gang waits for ever. Mutable; counts at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ScheduleTimeoutSeconds *int32 `json:"scheduleTimeoutSeconds,omitempty"`

	// recoveryTimeoutSeconds completes an attempt with code -131 when the scheduled gang has lost needed members, and
	// for this number of seconds there was no room for replacements. Delays of the controller, and tasks that a rescale
	// has added, don't count. Default: the gang waits for ever. Mutable; counts at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	RecoveryTimeoutSeconds *int32 `json:"recoveryTimeoutSeconds,omitempty"`

	// maxRuntimeSeconds completes an attempt with code -240 when this number of seconds, 1 to 315360000, has passed
	// since minMember tasks ran. A retry has the whole time again. A Framework without a gang has the annotation
	// lockstep.dev/max-runtime-seconds for it, and counts from its first running task; where both are set the smaller
	// one holds. Default: no limit. Mutable; while the attempt runs the limit can only be lowered, and an added limit
	// counts from its addition.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	MaxRuntimeSeconds *int32 `json:"maxRuntimeSeconds,omitempty"`

	// expectedRuntimeSeconds is how long an attempt will probably run, in seconds, 1 to 315360000, counted like
	// maxRuntimeSeconds. An estimate ends nothing; the scheduler plans with the estimate. Default: unknown. Mutable;
	// counts at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	ExpectedRuntimeSeconds *int32 `json:"expectedRuntimeSeconds,omitempty"`

	// priorityClassName ranks the gang among others. Pods with a template without a class and a priority get this class.
	// Default: the highest priority among the Pods. A change counts from the next attempt.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// queue is recorded on the PodGroup. Default "default". A change counts
	// from the next attempt.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`

	// topology says how close together the tasks must or should be, widest
	// domain first. A change counts from the next attempt.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Topology []schedulingv1alpha1.TopologyConstraint `json:"topology,omitempty"`

	// disruptionMode says what preemption may take of a running gang. Default
	// Gang. A change counts from the next attempt.
	// +optional
	DisruptionMode schedulingv1alpha1.DisruptionMode `json:"disruptionMode,omitempty"`
}

// TaskRoleSpec is a kind of task: how many tasks there are, what each runs, and how their ends decide the attempt.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minMember) || self.minMember <= self.taskNumber",fieldPath=".minMember",message="must be at most the taskNumber of its role: a larger minimum could never be met"
type TaskRoleSpec struct {
	// name identifies the role in the Framework: 1 to 63 lower-case letters
	// and digits, no hyphen, so that the Pod name
	// {framework}-{role}-{index} reads in one way only. Unique.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]{1,63}$')",message="a task role's name must be 1 to 63 lower-case letters and digits, without hyphens"
	Name string `json:"name"`

	// taskNumber is how many tasks the role has, 0 to 10000, with indexes from 0. The sum over all roles is at most
	// 10000, too. Default 0. Mutable: a change rescales the role.
	// +optional
	// +default=0
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	TaskNumber int32 `json:"taskNumber"`

	// minMember is how many tasks of this role must be placed together with the gang, from 1 to taskNumber. Default: no
	// separate minimum. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MinMember *int32 `json:"minMember,omitempty"`

	// preparingTimeoutSeconds ends an attempt of a task with code -320 when the Pod did not run for this number of
	// seconds: because an image can't be pulled, a volume or a Secret is missing, or init containers take too long. The
	// seconds count from the creation of the Pod. In a gang the seconds count from when the Pod has a node: a gang that
	// waits for a turn is bounded by gang.scheduleTimeoutSeconds alone. Default: the task waits for ever. Mutable; an
	// added time-out counts from then on, other changes at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	PreparingTimeoutSeconds *int32 `json:"preparingTimeoutSeconds,omitempty"`

	// frameworkAttemptCompletionPolicy says how the ends of this role's tasks
	// complete the attempt. Mutable; counts at the next decision.
	// +optional
	// +kubebuilder:default={}
	FrameworkAttemptCompletionPolicy CompletionPolicySpec `json:"frameworkAttemptCompletionPolicy,omitzero"`

	// task describes each task of the role.
	// +optional
	// +kubebuilder:default={}
	Task TaskSpec `json:"task,omitzero"`
}

// CompletionPolicySpec says how the ends of one role's tasks complete the attempt. The first threshold that is
// reached, over all roles, completes the attempt with the result of the task that reached it. If none is, the attempt
// succeeds once every task has completed.
type CompletionPolicySpec struct {
	// minFailedTaskCount completes the attempt once this number of tasks of the role have failed. 0 and -1 disable the
	// threshold. Default 1.
	// +optional
	// +default=1
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=2147483647
	MinFailedTaskCount *int32 `json:"minFailedTaskCount,omitempty"`

	// minSucceededTaskCount completes the attempt once this number of tasks of the role have succeeded. 0 and -1 disable
	// the threshold. Default -1.
	// +optional
	// +default=-1
	// +kubebuilder:default=-1
	// +kubebuilder:validation:Minimum=-1
	// +kubebuilder:validation:Maximum=2147483647
	MinSucceededTaskCount *int32 `json:"minSucceededTaskCount,omitempty"`
}

// TaskSpec describes each task of a role.
type TaskSpec struct {
	// retryPolicy decides whether a completed attempt of one task is followed
	// by another, while the rest of the Framework goes on.
	// +optional
	// +kubebuilder:default={}
	RetryPolicy RetryPolicySpec `json:"retryPolicy,omitzero"`

	// podGracefulDeletionTimeoutSec is how many seconds a Pod may take to end after its deletion, before it is deleted
	// by force, at least 0. Null, the default, never forces: two instances of a task then never run at once, even if a
	// node is lost. Mutable; counts at once.
	// +optional
	// +nullable
	// +kubebuilder:validation:Minimum=0
	PodGracefulDeletionTimeoutSec *int64 `json:"podGracefulDeletionTimeoutSec,omitempty"`

	// pod is the template of the task's Pod, a v1 PodTemplateSpec with metadata and spec. The template is stored as
	// written, so that fields of any version of Kubernetes survive; the placeholders {{FC_FRAMEWORK_NAMESPACE}},
	// {{FC_FRAMEWORK_NAME}}, {{FC_TASKROLE_NAME}}, {{FC_TASK_INDEX}}, {{FC_CONFIGMAP_NAME}} and {{FC_POD_NAME}} are
	// replaced anywhere in it. A change counts for Pods created later.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Pod runtime.RawExtension `json:"pod,omitzero"`
}
