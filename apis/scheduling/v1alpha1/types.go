// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of the Pods of a group.
const (
	// LabelPodGroup names the group of a Pod, in the Pod's own namespace.
	LabelPodGroup = "scheduling.lockstep.dev/pod-group"
	// LabelRole names the role of a Pod in its group, for minRoleMember.
	LabelRole = "scheduling.lockstep.dev/role"
)

// Annotations of a group that has room kept for members that are still to come.
const (
	// AnnotationReservationTimeout is how long that room is reserved at most from the start of the group, such as 5m.
	// The annotation only shortens the time in the scheduler's configuration.
	AnnotationReservationTimeout = "scheduling.lockstep.dev/reservation-timeout"
	// AnnotationExpectedMembers is how many members there are to be in all.
	AnnotationExpectedMembers = "scheduling.lockstep.dev/expected-members"
)

// Annotations that say how long work runs, in whole seconds from 1 to MaxRuntimeSeconds.
const (
	// AnnotationMaxRuntime, on a Framework, a Volcano Job or a training job of Kubeflow, limits how long the job runs.
	// See PodGroupSpec.MaxRuntimeSeconds.
	AnnotationMaxRuntime = "lockstep.dev/max-runtime-seconds"
	// AnnotationExpectedRuntime, on such a job, a PodGroup or a Pod, says how long the work will probably run. An
	// estimate ends nothing.
	AnnotationExpectedRuntime = "scheduling.lockstep.dev/expected-runtime-seconds"
	// AnnotationMinRuntime, on a PriorityClass, is for how many seconds work of the class runs before it is preempted, if
	// other work can be preempted instead.
	AnnotationMinRuntime = "scheduling.lockstep.dev/min-runtime-seconds"
	// AnnotationMaintenanceFrom, on a Node, is from when on it is maintained, as RFC 3339 has it. No work starts there that may
	// run longer, but Pods of DaemonSets.
	AnnotationMaintenanceFrom = "scheduling.lockstep.dev/maintenance-from"
)

// MaxRuntimeSeconds is the longest run time that can be asked for, in seconds: ten years of 365 days.
const MaxRuntimeSeconds = 10 * 365 * 24 * 60 * 60

// RuntimeLimit is a limit of the run time of a job, from when it counts.
type RuntimeLimit struct {
	// seconds is the limit. A limit never grows while it counts.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	Seconds int32 `json:"seconds"`
	// since is when the limit began to count, by the controller's clock.
	// +optional
	// +nullable
	Since metav1.Time `json:"since"`
}

// AnnotationStaged, with the value "true" on a group or on its Pods, says that minMember counts
// members which only come after others have run. Then no more are placed together than there are.
const AnnotationStaged = "scheduling.lockstep.dev/staged"

// LabelGangByOwner, with the value "true" on a namespace, lets lockstep-controller make PodGroups for Jobs, JobSets
// and LeaderWorkerSets there.
const LabelGangByOwner = "scheduling.lockstep.dev/gang-by-owner"

// DefaultQueue is the queue of a group that names none.
const DefaultQueue = "default"

// PodGroup is a set of Pods that are placed together or not at all.
//
// +genclient
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +kubebuilder:resource:path=podgroups,singular=podgroup,shortName=lpg,categories={lockstep}
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Min",type=integer,JSONPath=`.spec.minMember`
// +kubebuilder:printcolumn:name="Scheduled",type=integer,JSONPath=`.status.scheduled`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.running`
// +kubebuilder:printcolumn:name="Succeeded",type=integer,JSONPath=`.status.succeeded`
// +kubebuilder:printcolumn:name="Failed",type=integer,JSONPath=`.status.failed`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.reason!="Scheduled")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name must be at most 63 characters, because Pods name their group in a label"
type PodGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says when the group may start and how the members relate.
	// +required
	Spec PodGroupSpec `json:"spec"`

	// status is what the scheduler and the controller have seen.
	// +optional
	Status PodGroupStatus `json:"status,omitzero"`
}

// PodGroupList is a list of PodGroups.
//
// +kubebuilder:object:root=true
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type PodGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []PodGroup `json:"items"`
}

// PodGroupSpec says when a group may start and how the members relate.
//
// +kubebuilder:validation:XValidation:rule=`(has(self.priorityClassName) ? self.priorityClassName : "") == (has(oldSelf.priorityClassName) ? oldSelf.priorityClassName : "")`,fieldPath=".priorityClassName",message="is immutable: delete the PodGroup and create it anew"
// +kubebuilder:validation:XValidation:rule="self.queue == oldSelf.queue",fieldPath=".queue",message="is immutable: delete the PodGroup and create it anew"
// +kubebuilder:validation:XValidation:rule="(has(self.topology) ? self.topology : []) == (has(oldSelf.topology) ? oldSelf.topology : [])",fieldPath=".topology",message="is immutable: delete the PodGroup and create it anew"
// +kubebuilder:validation:XValidation:rule="self.disruptionMode == oldSelf.disruptionMode",fieldPath=".disruptionMode",message="is immutable: delete the PodGroup and create it anew"
// +kubebuilder:validation:XValidation:rule=`(has(self.memberLabels) ? self.memberLabels : {}) == (has(oldSelf.memberLabels) ? oldSelf.memberLabels : {})`,fieldPath=".memberLabels",message="is immutable: delete the PodGroup and create it anew"
// +kubebuilder:validation:XValidation:rule=`(has(self.schedulingPolicy) ? self.schedulingPolicy : "") == (has(oldSelf.schedulingPolicy) ? oldSelf.schedulingPolicy : "")`,fieldPath=".schedulingPolicy",message="is immutable: delete the PodGroup and create it anew"
type PodGroupSpec struct {
	// minMember is how many members must be placed together, at least 1.
	// Mutable.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	MinMember int32 `json:"minMember"`

	// minRoleMember is how many members of a role must be among these, at least 1 each. A member's role is the label
	// scheduling.lockstep.dev/role. The field holds beside minMember. Default empty. Mutable.
	// +optional
	// +kubebuilder:validation:MaxProperties=256
	// +kubebuilder:validation:XValidation:rule="self.all(role, self[role] >= 1)",message="every value of minRoleMember must be at least 1"
	// +kubebuilder:validation:XValidation:rule="self.all(role, self[role] <= 2147483647)",message="every value of minRoleMember must be at most 2147483647"
	MinRoleMember map[string]int32 `json:"minRoleMember,omitempty"`

	// minResources are the resources of all members together, including members that are still to come. The group starts
	// when there is room for all, and what members do not take yet is reserved for others of the group, within limits of
	// the scheduler's configuration: by default nothing is. Only what nodes can have counts. Default empty. Mutable.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	MinResources map[corev1.ResourceName]resource.Quantity `json:"minResources,omitempty"`

	// priorityClassName ranks the group among others and chooses victims, but never above the highest priority of a
	// member. Default: that. Immutable.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// queue is recorded. Default "default". Immutable.
	// +optional
	// +default="default"
	// +kubebuilder:default=default
	// +kubebuilder:validation:MaxLength=253
	Queue string `json:"queue,omitempty"`

	// topology says how close together the members must or should be, widest
	// domain first. Default empty. Immutable.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=4
	Topology []TopologyConstraint `json:"topology,omitempty"`

	// disruptionMode says what preemption may take of a placed group. Default
	// Gang. Immutable.
	// +optional
	// +default="Gang"
	// +kubebuilder:default=Gang
	DisruptionMode DisruptionMode `json:"disruptionMode,omitempty"`

	// maxRuntimeSeconds is how long the group runs at most, in seconds, 1 to 315360000: from when minMember members run
	// until all have ended. lockstep-controller ends the jobs of PodGroups that it has made. In a PodGroup that a user
	// or another program made, the field ends nothing and counts as an estimate. Default: no limit. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	MaxRuntimeSeconds *int32 `json:"maxRuntimeSeconds,omitempty"`

	// expectedRuntimeSeconds is how long the group will probably run, in seconds, 1 to 315360000, counted like
	// maxRuntimeSeconds. An estimate ends nothing. Default: unknown. Mutable.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	ExpectedRuntimeSeconds *int32 `json:"expectedRuntimeSeconds,omitempty"`

	// memberLabels are the labels by which Pods are members, in place of the label scheduling.lockstep.dev/pod-group:
	// the labels that Kubernetes, JobSet or LeaderWorkerSet write into Pods. lockstep-controller sets the labels in
	// PodGroups for these. The labels count only in a PodGroup with a name made of the same labels. Default empty.
	// Immutable.
	// +optional
	// +kubebuilder:validation:MaxProperties=4
	MemberLabels map[string]string `json:"memberLabels,omitempty"`

	// schedulingPolicy says whether the members are placed together. Default
	// Gang. Immutable.
	// +optional
	SchedulingPolicy SchedulingPolicy `json:"schedulingPolicy,omitempty"`
}

// SchedulingPolicy says whether the members of a group are placed together.
//
// +enum
// +kubebuilder:validation:Enum=Gang;Basic;GangPerJob
type SchedulingPolicy string

const (
	// PolicyGang places minMember members together or none.
	PolicyGang SchedulingPolicy = "Gang"
	// PolicyBasic places each member by itself, as if the member named no group.
	PolicyBasic SchedulingPolicy = "Basic"
	// PolicyGangPerJob places nothing by this group: each Job of the JobSet has a separate group. The policy is for
	// groups with memberLabels of JobSet.
	PolicyGangPerJob SchedulingPolicy = "GangPerJob"
)

// TopologyConstraint asks for members to be in one domain: the nodes that have
// the same value of a label.
type TopologyConstraint struct {
	// key is the node label with the domains as values.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=316
	Key string `json:"key"`

	// mode is Required, all members in one domain or none placed, or
	// Preferred, as few domains as possible.
	// +required
	Mode TopologyMode `json:"mode"`
}

// TopologyMode says how strict a TopologyConstraint is.
//
// +enum
// +kubebuilder:validation:Enum=Required;Preferred
type TopologyMode string

const (
	// TopologyRequired places all members in one domain or none at all.
	TopologyRequired TopologyMode = "Required"
	// TopologyPreferred places members in as few domains as possible.
	TopologyPreferred TopologyMode = "Preferred"
)

// DisruptionMode says what preemption may take of a placed group.
//
// +enum
// +kubebuilder:validation:Enum=Gang;Pod
type DisruptionMode string

const (
	// DisruptGang takes the whole group, or only what is above minMember.
	DisruptGang DisruptionMode = "Gang"
	// DisruptPod takes members one by one.
	DisruptPod DisruptionMode = "Pod"
)

// PodGroupStatus is what the scheduler and the controller have seen.
type PodGroupStatus struct {
	// phase sums up the counters. Written by the controller.
	// +optional
	Phase PodGroupPhase `json:"phase,omitempty"`

	// conditions say whether the group is scheduled, and if not, why. Written
	// by the scheduler.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []PodGroupCondition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// members is how many Pods belong to the group.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Members int32 `json:"members"`

	// scheduled is how many members are placed on nodes and have not ended.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Scheduled int32 `json:"scheduled"`

	// running is how many members run.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Running int32 `json:"running"`

	// succeeded is how many members succeeded.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Succeeded int32 `json:"succeeded"`

	// failed is how many members failed.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	Failed int32 `json:"failed"`

	// expectedStart is when the group is expected to be scheduled, for the queue as it stood when this
	// was written. Written by the scheduler while the group waits, for the first 100 groups of each priority,
	// and not taken back when the group is scheduled. Absent if nothing is known.
	// +optional
	ExpectedStart *ExpectedStart `json:"expectedStart,omitempty"`
}

// ExpectedStart is when a group is expected to be scheduled.
type ExpectedStart struct {
	// latest is when the group is scheduled if all work ahead of it uses the whole of its limits. Absent if
	// the limit of some of that work is unknown.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	Latest metav1.Time `json:"latest,omitzero"`
	// probable is when the group is probably scheduled, by estimates. A limit counts as an estimate where there is no
	// other. Absent if some of the work ahead has neither.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	Probable metav1.Time `json:"probable,omitzero"`
}

// PodGroupPhase sums up where the members of a group are.
//
// +enum
// +kubebuilder:validation:Enum=Pending;Running;Unknown;Completed
type PodGroupPhase string

const (
	// PodGroupPending: accepted, fewer than minMember members are active. The
	// start. Exits: Running; Completed.
	PodGroupPending PodGroupPhase = "Pending"
	// PodGroupRunning: minMember and every minRoleMember are active, that is,
	// running or succeeded. Exits: Unknown; Completed.
	PodGroupRunning PodGroupPhase = "Running"
	// PodGroupUnknown: a group that ran has lost members from their
	// nodes, and can't reach minMember without being scheduled again. Exits:
	// Running; Pending; Completed.
	PodGroupUnknown PodGroupPhase = "Unknown"
	// PodGroupCompleted: every member has succeeded or failed. Exit: Pending,
	// when a member is replaced.
	PodGroupCompleted PodGroupPhase = "Completed"
)

// PodGroupCondition is one aspect of a group's scheduling.
type PodGroupCondition struct {
	// type is Unschedulable or Scheduled.
	// +required
	// +kubebuilder:validation:MaxLength=316
	Type string `json:"type"`

	// status is True or False.
	// +required
	// +kubebuilder:validation:Enum=True;False;Unknown
	Status metav1.ConditionStatus `json:"status"`

	// transitionID is new with each change of status.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	TransitionID string `json:"transitionID,omitempty"`

	// observedGeneration is the metadata.generation of the group that the
	// scheduler saw.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastTransitionTime is when status last changed, as RFC 3339 has it, with T and Z in
	// upper case: API servers take other forms for a time that clients can't read.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Format=date-time
	// +kubebuilder:validation:Pattern=`^\d{4}-\d{2}-\d{2}T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`

	// reason is a word for programs: letters, digits, '_', ',' and ':', a letter first, and neither ',' nor ':' last.
	// Frameworks repeat the reason in their own conditions, where Kubernetes asks for just that.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?)?$`
	Reason string `json:"reason,omitempty"`

	// message is a sentence for people.
	// +optional
	// +kubebuilder:validation:MaxLength=32768
	Message string `json:"message,omitempty"`
}

// Types of PodGroupCondition. They mirror each other: never are both True.
const (
	// ConditionUnschedulable is True while the group can't be placed.
	ConditionUnschedulable = "Unschedulable"
	// ConditionScheduled is True once minMember members are bound.
	ConditionScheduled = "Scheduled"
)

// Reasons of PodGroupCondition.
const (
	// ReasonScheduled: minMember members are bound.
	// ---
	// The printer column Reason leaves it out: a JSONPath can't ask for Unschedulable and True, but of the
	// two conditions, which mirror each other, it can ask for another reason.
	ReasonScheduled = "Scheduled"
	// ReasonNotEnoughTasks: fewer members exist than minMember.
	ReasonNotEnoughTasks = "NotEnoughTasks"
	// ReasonNotEnoughResources: there is no place for minMember members.
	ReasonNotEnoughResources = "NotEnoughResources"
	// ReasonBindingFailed: there is a place for minMember members, and one of them
	// could not be bound to its node.
	ReasonBindingFailed = "BindingFailed"
	// ReasonBinding: there is a place for minMember members, and one is not bound to a node yet, because volumes are
	// being provisioned, say.
	ReasonBinding = "Binding"
	// ReasonPodFailed: a running group lost a member that failed, and the replacement can't be placed.
	ReasonPodFailed = "PodFailed"
	// ReasonPodDeleted: a running group lost a member that was deleted, and the replacement can't be placed.
	ReasonPodDeleted = "PodDeleted"
)
