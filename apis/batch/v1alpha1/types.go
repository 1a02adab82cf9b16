// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// Bounds of a Job.
const (
	// MaxTasks is the most tasks that a Job may have.
	MaxTasks = 100
	// MaxReplicas is the most Pods that a Job may have, over all its tasks.
	MaxReplicas = 10000
)

// Job is a distributed job: tasks whose Pods are placed as a gang, live and end
// together as its policies say.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=jobs,singular=job,shortName={vcjob,vj}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.state.phase`
// +kubebuilder:printcolumn:name="minAvailable",type=integer,JSONPath=`.status.minAvailable`
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`
type Job struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user wants. The controller never writes it.
	// +required
	Spec JobSpec `json:"spec"`

	// status is what the controller has observed and decided. Only the controller
	// writes it.
	// +optional
	// +structType=atomic
	Status JobStatus `json:"status,omitzero"`
}

// JobList is a list of Jobs.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type JobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Job `json:"items"`
}

// JobSpec is what the user wants of a Job. Of a Job that exists, only minAvailable,
// priorityClassName, and replicas and minAvailable of its tasks may change; a change
// counts at once.
type JobSpec struct {
	// schedulerName is the scheduler of Pods whose template names none. Default: the
	// gang scheduler. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	SchedulerName string `json:"schedulerName,omitempty"`

	// minAvailable is how many Pods must run for the Job to be Running, how many are
	// placed together or not at all, and how many must succeed, if it lives to its
	// natural end. At most the sum of all replicas. Default, also for 0: the sum over
	// all tasks of their minAvailable. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinAvailable int32 `json:"minAvailable,omitempty"`

	// volumes are claims that are mounted into every container, init containers
	// excepted. Default none. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Volumes []VolumeSpec `json:"volumes,omitempty"`

	// tasks are the kinds of Pods, at least one, with at most 10000 replicas in all.
	// Their number, order and names are immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	Tasks []TaskSpec `json:"tasks,omitempty"`

	// policies say what to do on which event, where no policy of the event's task does.
	// Default none. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// plugins give Pods what they need to find each other: by name, the flags of each.
	// env, svc, ssh, tensorflow, pytorch, mpi, ray and hcclrank exist. Default none;
	// tensorflow, pytorch, mpi and ray bring svc along, mpi also ssh. Immutable.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Plugins map[string]PluginFlags `json:"plugins,omitempty"`

	// runningEstimate is how long the Job is thought to run. It is kept and nobody
	// reads it. Immutable.
	// +optional
	RunningEstimate *Duration `json:"runningEstimate,omitempty"`

	// queue is recorded on the Pods and on their gang. Default "default". Immutable.
	// +optional
	// +default="default"
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	Queue string `json:"queue,omitempty"`

	// maxRetry is how many restarts, of the Job or parts of it, make it Failed: a Job
	// runs at most so often. Default 3, also for 0. Immutable.
	// +optional
	// +default=3
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// ttlSecondsAfterFinished is how many seconds after its end a Completed, Failed or
	// Terminated Job is deleted, 0 at once. Default: it is kept. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// priorityClassName ranks the gang among others, and is the class of Pods whose
	// template names none. Default: the highest priority among its Pods. Mutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// minSuccess completes the Job as soon as so many Pods have succeeded. Default:
	// it ends when all Pods have. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MinSuccess *int32 `json:"minSuccess,omitempty"`

	// networkTopology says how close together the Pods must or should be. Default:
	// anywhere. Immutable.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`
}

// PluginFlags are the flags of a plugin, as on a command line: --flag=value.
//
// +listType=atomic
// +kubebuilder:validation:MaxItems=32
// +kubebuilder:validation:items:MaxLength=16384
type PluginFlags []string

// Duration is a span of time as it was written, like 1h30m or 90s: units are h, m, s,
// ms, us and ns. The text is kept, and looked into when it is needed: what can't be
// read must not keep clients from reading other Jobs.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:Pattern=`^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$`
type Duration string

// VolumeSpec is a claim, and where it is mounted.
type VolumeSpec struct {
	// mountPath is where the volume appears in every container. Unique in the Job,
	// without colon.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^[^:]*$`
	MountPath string `json:"mountPath"`

	// volumeClaimName is a PersistentVolumeClaim in the Job's namespace. Until it
	// exists the Job waits.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeClaimName string `json:"volumeClaimName,omitempty"`

	// volumeClaim is the spec of a PersistentVolumeClaim that is made for the Job, kept
	// over its restarts, and deleted with it. It is kept as it was written.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	VolumeClaim *runtime.RawExtension `json:"volumeClaim,omitempty"`
}

// TaskSpec is a kind of Pods: how many of them there are, and what each runs.
type TaskSpec struct {
	// name identifies the task in its Job; it is part of the names of its Pods. Unique.
	// Default: "default" and the place of the task in the list, from 0. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$`
	Name string `json:"name,omitempty"`

	// replicas is how many Pods the task has, with indexes from 0. Default 0. Mutable:
	// it scales the task.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	Replicas int32 `json:"replicas,omitempty"`

	// minAvailable is how many Pods of this task must be placed with the gang, and must
	// succeed at the natural end. It counts only if minAvailable of the Job is at least
	// the sum over all tasks. At most replicas. Default: minPartitions × partitionSize
	// if minPartitions is above 0, else replicas. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MinAvailable *int32 `json:"minAvailable,omitempty"`

	// template is a v1 PodTemplateSpec of which metadata and spec count. It is kept as
	// it was written, so that fields of any version of Kubernetes survive. Immutable.
	// +optional
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template,omitzero"`

	// policies say what to do on which event of this task, before those of the Job.
	// Default none. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// topologyPolicy becomes the annotation volcano.sh/numa-topology-policy of the
	// Pods, and nothing else. Default: no annotation. Immutable.
	// +optional
	TopologyPolicy NumaPolicy `json:"topologyPolicy,omitempty"`

	// maxRetry is how many restarts of its containers, over all Pods that have not
	// ended, raise the event TaskFailed. Default 3, also for 0. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	MaxRetry int32 `json:"maxRetry,omitempty"`

	// dependsOn names tasks that must be ready before a Pod of this one is made.
	// Default none. Immutable.
	// +optional
	DependsOn *DependsOn `json:"dependsOn,omitempty"`

	// partitionPolicy divides the task into equal groups of consecutive indexes.
	// Default: it is not divided. Immutable.
	// +optional
	PartitionPolicy *PartitionPolicySpec `json:"partitionPolicy,omitempty"`
}

// NumaPolicy is a wish for the CPUs and devices of a Pod to be near each other.
//
// +enum
// +kubebuilder:validation:Enum=none;best-effort;restricted;single-numa-node
type NumaPolicy string

// Values of NumaPolicy: those of the kubelet's topology manager.
const (
	NumaNone           NumaPolicy = "none"
	NumaBestEffort     NumaPolicy = "best-effort"
	NumaRestricted     NumaPolicy = "restricted"
	NumaSingleNumaNode NumaPolicy = "single-numa-node"
)

// LifecyclePolicy says what to do on some events, or on an exit code.
type LifecyclePolicy struct {
	// action is what to do.
	// +optional
	Action busv1alpha1.Action `json:"action,omitempty"`

	// event is what to act on. Default none.
	// +optional
	// +kubebuilder:validation:Enum=*;PodFailed;PodEvicted;PodPending;TaskCompleted;TaskFailed;Unknown;JobUpdated
	Event busv1alpha1.Event `json:"event,omitempty"`

	// events are more to act on, beside event. Default none.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=*;PodFailed;PodEvicted;PodPending;TaskCompleted;TaskFailed;Unknown;JobUpdated
	Events []busv1alpha1.Event `json:"events,omitempty"`

	// exitCode acts on Pods that fail with this code, instead of events. Not 0.
	// +optional
	// +kubebuilder:validation:Minimum=-2147483648
	// +kubebuilder:validation:Maximum=2147483647
	ExitCode *int32 `json:"exitCode,omitempty"`

	// timeout is how long after its event the action is taken. Default: at once.
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`
}

// DependsOn names tasks that must be ready before another begins. A task is ready
// when as many of its Pods as its minAvailable have succeeded, or run with all
// containers ready.
type DependsOn struct {
	// name lists the tasks.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	Name []string `json:"name,omitempty"`

	// iteration says whether all of them must be ready, or any one. Default all.
	// +optional
	Iteration Iteration `json:"iteration,omitempty"`
}

// Iteration is how many of several tasks are meant.
//
// +enum
// +kubebuilder:validation:Enum=any;all
type Iteration string

const (
	// IterationAny asks for one of the tasks.
	IterationAny Iteration = "any"
	// IterationAll asks for all tasks.
	IterationAll Iteration = "all"
)

// PartitionPolicySpec divides a task: partition k has the indexes from
// k × partitionSize, partitionSize of them. replicas must be
// totalPartitions × partitionSize.
type PartitionPolicySpec struct {
	// totalPartitions is how many partitions there are.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	TotalPartitions int32 `json:"totalPartitions"`

	// partitionSize is how many Pods each has.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	PartitionSize int32 `json:"partitionSize"`

	// minPartitions is the minimum of the task in partitions, at most
	// totalPartitions. Default 0: all, or what minAvailable of the task says.
	// +optional
	// +default=0
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	MinPartitions int32 `json:"minPartitions,omitempty"`

	// networkTopology says how close together the Pods of a partition should be. It is
	// recorded.
	// +optional
	NetworkTopology *NetworkTopologySpec `json:"networkTopology,omitempty"`
}

// NetworkTopologySpec bounds the domain of the network that Pods may span. Tiers count
// from the narrowest; which node label each is, the controller's configuration says.
type NetworkTopologySpec struct {
	// mode is hard, one such domain or none placed, or soft, as few domains as
	// possible. Default hard.
	// +optional
	// +default="hard"
	// +kubebuilder:default=hard
	Mode NetworkTopologyMode `json:"mode,omitempty"`

	// highestTierAllowed is the number of the widest tier. Not with highestTierName.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	HighestTierAllowed *int32 `json:"highestTierAllowed,omitempty"`

	// highestTierName is the name of the widest tier. Not with highestTierAllowed.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	HighestTierName string `json:"highestTierName,omitempty"`
}

// NetworkTopologyMode says how strict a NetworkTopologySpec is.
//
// +enum
// +kubebuilder:validation:Enum=hard;soft
type NetworkTopologyMode string

const (
	// NetworkTopologyHard places all Pods in one domain or none at all.
	NetworkTopologyHard NetworkTopologyMode = "hard"
	// NetworkTopologySoft places Pods in as few domains as possible.
	NetworkTopologySoft NetworkTopologyMode = "soft"
)
