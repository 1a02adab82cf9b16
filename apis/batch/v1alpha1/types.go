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
// +kubebuilder:metadata:labels="app.kubernetes.io/part-of=lockstep"
// +kubebuilder:resource:path=jobs,singular=job,shortName={vcjob,vj}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="STATUS",type=string,JSONPath=`.status.state.phase`
// +kubebuilder:printcolumn:name="minAvailable",type=integer,JSONPath=`.status.minAvailable`
// +kubebuilder:printcolumn:name="RUNNINGS",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="QUEUE",type=string,priority=1,JSONPath=`.spec.queue`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be at most 63 lower-case letters, digits and hyphens, starting and ending with a letter or digit, because it is a label value and a part of host names"
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
// priorityClassName, and replicas and minAvailable of its tasks may change. A change counts
// at once, but that of priorityClassName only for Pods and PodGroups that are made later.
//
// +kubebuilder:validation:XValidation:rule="has(self.tasks) && self.tasks.size() > 0",message="No task specified in job spec: at least one is needed"
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || !has(self.tasks) || self.minAvailable <= self.tasks.map(t, t.?replicas.orValue(0)).sum()",fieldPath=".minAvailable",message="job 'minAvailable' should not be greater than total replicas in tasks"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || self.tasks.map(t, t.?replicas.orValue(0)).sum() <= 10000",fieldPath=".tasks",message="must have at most 10000 replicas, which is their sum over all tasks"
// +kubebuilder:validation:XValidation:rule=`oldSelf.hasValue() || !has(self.volumes) || self.volumes.all(v, !has(v.volumeClaim) || v.?volumeClaimName.orValue("") == "")`,fieldPath=".volumes",message="either VolumeClaim or VolumeClaimName must be specified, not both",optionalOldSelf=true
// +kubebuilder:validation:XValidation:rule=`!has(self.tasks) || [self.tasks.filter(t, t.?name.orValue("") != "").map(t, t.name)].all(names, self.tasks.all(t, !has(t.dependsOn) || !has(t.dependsOn.name) || t.dependsOn.name.all(d, d != t.?name.orValue("") && (d in names || d.matches("^default(0|[1-9][0-9]?)$") && int(d.substring(7)) < self.tasks.size() && self.tasks[int(d.substring(7))].?name.orValue("") == ""))))`,fieldPath=".tasks",message="dependsOn must name other tasks of the Job"
// +kubebuilder:validation:XValidation:rule=`(has(self.schedulerName) ? self.schedulerName : "") == (has(oldSelf.schedulerName) ? oldSelf.schedulerName : "")`,fieldPath=".schedulerName",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="(has(self.policies) ? self.policies : []) == (has(oldSelf.policies) ? oldSelf.policies : [])",fieldPath=".policies",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="(has(self.plugins) ? self.plugins : {}) == (has(oldSelf.plugins) ? oldSelf.plugins : {})",fieldPath=".plugins",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule=`(has(self.runningEstimate) ? self.runningEstimate : "") == (has(oldSelf.runningEstimate) ? oldSelf.runningEstimate : "")`,fieldPath=".runningEstimate",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule=`(has(self.queue) ? self.queue : "") == (has(oldSelf.queue) ? oldSelf.queue : "")`,fieldPath=".queue",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="(has(self.maxRetry) ? self.maxRetry : 0) == (has(oldSelf.maxRetry) ? oldSelf.maxRetry : 0)",fieldPath=".maxRetry",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="(has(self.ttlSecondsAfterFinished) ? self.ttlSecondsAfterFinished : -1) == (has(oldSelf.ttlSecondsAfterFinished) ? oldSelf.ttlSecondsAfterFinished : -1)",fieldPath=".ttlSecondsAfterFinished",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="(has(self.minSuccess) ? self.minSuccess : 0) == (has(oldSelf.minSuccess) ? oldSelf.minSuccess : 0)",fieldPath=".minSuccess",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="has(self.networkTopology) == has(oldSelf.networkTopology) && (!has(self.networkTopology) || self.networkTopology == oldSelf.networkTopology)",fieldPath=".networkTopology",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule=`(has(self.volumes) ? self.volumes.map(v, [v.mountPath, v.?volumeClaimName.orValue("")]) : []) == (has(oldSelf.volumes) ? oldSelf.volumes.map(v, [v.mountPath, v.?volumeClaimName.orValue("")]) : [])`,fieldPath=".volumes",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule="(has(self.volumes) ? self.volumes.map(v, v.?volumeClaim) : []) == (has(oldSelf.volumes) ? oldSelf.volumes.map(v, v.?volumeClaim) : [])",fieldPath=".volumes",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable"
// +kubebuilder:validation:XValidation:rule=`(has(self.tasks) ? self.tasks.map(t, t.?name.orValue("")) : []) == (has(oldSelf.tasks) ? oldSelf.tasks.map(t, t.?name.orValue("")) : [])`,fieldPath=".tasks",message="job updates may not add or remove tasks, rename them, or change their order"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() != oldSelf.tasks.size() || self.tasks.map(t, t.template) == oldSelf.tasks.map(t, t.template)",fieldPath=".tasks",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable: tasks[*].template differs"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() != oldSelf.tasks.size() || self.tasks.map(t, t.?policies.orValue([])) == oldSelf.tasks.map(t, t.?policies.orValue([]))",fieldPath=".tasks",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable: tasks[*].policies differs"
// +kubebuilder:validation:XValidation:rule=`!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() != oldSelf.tasks.size() || self.tasks.map(t, t.?topologyPolicy.orValue("")) == oldSelf.tasks.map(t, t.?topologyPolicy.orValue(""))`,fieldPath=".tasks",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable: tasks[*].topologyPolicy differs"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() != oldSelf.tasks.size() || self.tasks.map(t, t.?maxRetry.orValue(0)) == oldSelf.tasks.map(t, t.?maxRetry.orValue(0))",fieldPath=".tasks",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable: tasks[*].maxRetry differs"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() != oldSelf.tasks.size() || self.tasks.map(t, t.?dependsOn) == oldSelf.tasks.map(t, t.?dependsOn)",fieldPath=".tasks",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable: tasks[*].dependsOn differs"
// +kubebuilder:validation:XValidation:rule="!has(self.tasks) || !has(oldSelf.tasks) || self.tasks.size() != oldSelf.tasks.size() || self.tasks.map(t, t.?partitionPolicy) == oldSelf.tasks.map(t, t.?partitionPolicy)",fieldPath=".tasks",message="job updates may not change fields other than minAvailable, priorityClassName, tasks[*].replicas and tasks[*].minAvailable: tasks[*].partitionPolicy differs"
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
	// +kubebuilder:validation:XValidation:rule="self.all(v, self.exists_one(w, w.mountPath == v.mountPath))",message="duplicated mountPath: every volume needs a path of its own"
	Volumes []VolumeSpec `json:"volumes,omitempty"`

	// tasks are the kinds of Pods, at least one, with at most 10000 replicas in all.
	// Their number, order and names are immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule=`[self.filter(t, t.?name.orValue("") != "").map(t, t.name)].all(names, names.all(n, names.indexOf(n) == names.lastIndexOf(n)))`,message="duplicated task name: every task needs a name of its own"
	Tasks []TaskSpec `json:"tasks,omitempty"`

	// policies say what to do on which event, where no policy of the event's task does.
	// Default none. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.exitCode) || self.exists_one(q, has(q.exitCode) && q.exitCode == p.exitCode))",message="duplicate exitCode: every policy needs codes and events of its own"
	// +kubebuilder:validation:XValidation:rule=`["*", "PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "JobUpdated"].all(e, self.filter(p, (p.?event.orValue("") == e || has(p.events) && e in p.events)).size() <= 1)`,message="duplicate event: every policy needs codes and events of its own"
	// +kubebuilder:validation:XValidation:rule=`!self.exists(p, p.?event.orValue("") == "*" || has(p.events) && "*" in p.events) || self.all(p, p.?event.orValue("*") == "*" && (!has(p.events) || p.events.all(e, e == "*")))`,message="if there's * here, no other policy should be here"
	Policies []LifecyclePolicy `json:"policies,omitempty"`

	// plugins give Pods what they need to find each other: by name, the flags of each.
	// env, svc, ssh, tensorflow, pytorch, mpi, ray and hcclrank exist. Default none;
	// tensorflow, pytorch, mpi and ray bring svc along, mpi also ssh. Immutable.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, p in ['env', 'svc', 'ssh', 'tensorflow', 'pytorch', 'mpi', 'ray', 'hcclrank'])",message="unable to find job plugin: there are env, svc, ssh, tensorflow, pytorch, mpi, ray and hcclrank"
	Plugins map[string]PluginFlags `json:"plugins,omitempty"`

	// runningEstimate is how long the Job will probably run, once minAvailable Pods run. The scheduler plans
	// with it; it ends nothing. Immutable.
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
	// template names none. Default: the highest priority among its Pods. Mutable; a change
	// counts for Pods that are made later, and for the gang from the next restart of the
	// whole Job on.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$`
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// minSuccess completes the Job as soon as this number of Pods have succeeded. Default:
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
// +kubebuilder:validation:XValidation:rule=`duration(self) >= duration("0s")`,message="must not be negative, and of at most 290 years"
type Duration string

// VolumeSpec is a claim, and where it is mounted.
//
// +kubebuilder:validation:XValidation:rule=`has(self.volumeClaim) || self.?volumeClaimName.orValue("") != ""`,message="either VolumeClaim or VolumeClaimName must be specified"
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.minAvailable) || self.minAvailable <= self.?replicas.orValue(0)",fieldPath=".minAvailable",message="'minAvailable' is greater than 'replicas' in task"
// +kubebuilder:validation:XValidation:rule="!has(self.partitionPolicy) || self.?replicas.orValue(0) == self.partitionPolicy.totalPartitions * self.partitionPolicy.partitionSize",fieldPath=".replicas",message="must be totalPartitions × partitionSize of the partitionPolicy"
// +kubebuilder:validation:XValidation:rule="!has(self.partitionPolicy) || !has(self.partitionPolicy.minPartitions) || self.partitionPolicy.minPartitions == 0 || !has(self.minAvailable) || self.minAvailable == self.partitionPolicy.minPartitions * self.partitionPolicy.partitionSize",fieldPath=".minAvailable",message="must be minPartitions × partitionSize of the partitionPolicy, or absent"
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
	// it was written, so that fields of any version of Kubernetes survive. It needs a
	// container at least. Immutable.
	// +required
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	Template runtime.RawExtension `json:"template"`

	// policies say what to do on which event of this task, before those of the Job.
	// Default none. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, !has(p.exitCode) || self.exists_one(q, has(q.exitCode) && q.exitCode == p.exitCode))",message="duplicate exitCode: every policy needs codes and events of its own"
	// +kubebuilder:validation:XValidation:rule=`["*", "PodFailed", "PodEvicted", "PodPending", "TaskCompleted", "TaskFailed", "Unknown", "JobUpdated"].all(e, self.filter(p, (p.?event.orValue("") == e || has(p.events) && e in p.events)).size() <= 1)`,message="duplicate event: every policy needs codes and events of its own"
	// +kubebuilder:validation:XValidation:rule=`!self.exists(p, p.?event.orValue("") == "*" || has(p.events) && "*" in p.events) || self.all(p, p.?event.orValue("*") == "*" && (!has(p.events) || p.events.all(e, e == "*")))`,message="if there's * here, no other policy should be here"
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
//
// +kubebuilder:validation:XValidation:rule=`self.?action.orValue("") in ["AbortJob", "RestartJob", "TerminateJob", "CompleteJob", "ResumeJob", "RestartTask", "RestartPod", "RestartPartition"]`,message="invalid policy action: must be AbortJob, RestartJob, TerminateJob, CompleteJob, ResumeJob, RestartTask, RestartPod or RestartPartition"
// +kubebuilder:validation:XValidation:rule="!has(self.exitCode) || !has(self.event) && self.?events.orValue([]).size() == 0",message="must not specify event and exitCode simultaneously"
// +kubebuilder:validation:XValidation:rule="has(self.exitCode) || has(self.event) || self.?events.orValue([]).size() > 0",message="either event and exitCode should be specified"
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
	// +kubebuilder:validation:XValidation:rule="self != 0",message="0 is not a valid error code"
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
//
// +kubebuilder:validation:XValidation:rule="!has(self.minPartitions) || self.minPartitions <= self.totalPartitions",fieldPath=".minPartitions",message="must be at most totalPartitions"
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
//
// +kubebuilder:validation:XValidation:rule=`!has(self.highestTierAllowed) || self.?highestTierName.orValue("") == ""`,message="must not specify highestTierAllowed and highestTierName simultaneously"
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
