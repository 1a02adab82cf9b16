// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CoschedulingArgs are the arguments of the scheduler plugin Coscheduling, as
// pluginConfig of a KubeSchedulerConfiguration gives them.
//
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
type CoschedulingArgs struct {
	metav1.TypeMeta `json:",inline"`

	// initialBackoff is how long a group that could not be placed waits at least before the next plan, 0s to 1h. The
	// wait doubles with each further failure. Default 1s.
	InitialBackoff *metav1.Duration `json:"initialBackoff,omitempty"`

	// maxBackoff bounds that wait, from initialBackoff to 1h. Default 10s.
	MaxBackoff *metav1.Duration `json:"maxBackoff,omitempty"`

	// cycleTimeout bounds how long the plan of one group may hold up the scheduler, 100ms
	// to 1m. A search for Pods to preempt may take a quarter longer. When a plan takes
	// longer, the scheduler gives it up, tells the group so by an event and its condition, and
	// plans the group again later. Default 2s.
	CycleTimeout *metav1.Duration `json:"cycleTimeout,omitempty"`

	// bindParallelism is how many members of groups are bound at the same time, 1 to 1000, besides one of each
	// namespace. Namespaces share this number. Default 64.
	BindParallelism *int32 `json:"bindParallelism,omitempty"`

	// bindRetries is how often a failed bind of a member is tried again on the
	// same node, 0 to 10. Default 3.
	BindRetries *int32 `json:"bindRetries,omitempty"`

	// podGroupAPIs say which PodGroups of other projects are served. All profiles must have the same.
	PodGroupAPIs PodGroupAPIs `json:"podGroupAPIs,omitzero"`

	// groupingRules make Pods without a PodGroup gangs. A rule that is not listed is off. All profiles must have the same.
	//
	// +listType=set
	GroupingRules []GroupingRule `json:"groupingRules,omitempty"`

	// reservations say how much room is reserved for groups. All profiles must have the same.
	Reservations Reservations `json:"reservations,omitzero"`

	// backfill says which work may use room that is reserved for a later time. All profiles must have the same.
	Backfill Backfill `json:"backfill,omitzero"`

	// preemption says which work is preempted last. It is the same in all profiles.
	Preemption Preemption `json:"preemption,omitzero"`

	// expectedStarts say how often groups are told when they will start. They are the same in all profiles.
	ExpectedStarts ExpectedStarts `json:"expectedStarts,omitzero"`
}

// Backfill says which work may use room that is reserved for a later time.
type Backfill struct {
	// estimates says that the scheduler counts on estimates of run times, of running work and of work that is to use the
	// room. If false, only enforced limits count. Default true.
	Estimates *bool `json:"estimates,omitempty"`

	// preemptOverrun lets work be preempted that runs longer than its estimate on nodes that are reserved for a group of the same or a
	// higher priority, when all of these nodes were to be free by estimates. Default false.
	PreemptOverrun *bool `json:"preemptOverrun,omitempty"`
}

// Preemption says which work is preempted last.
type Preemption struct {
	// minRuntimeSeconds is for how long work runs before it is preempted, if other work can be preempted instead, 0 to
	// 315360000. The annotation scheduling.lockstep.dev/min-runtime-seconds of its PriorityClass says otherwise. Default 0.
	MinRuntimeSeconds *int32 `json:"minRuntimeSeconds,omitempty"`
}

// ExpectedStarts say how often groups are told when they will start.
type ExpectedStarts struct {
	// interval is in what time it is found out anew when the groups that wait will start, 10s to 1h; 0s: never. It is longer where
	// that takes more than a twentieth of it. Default 1m.
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// PodGroupAPIs say which PodGroups of other projects are served.
type PodGroupAPIs struct {
	// schedulerPlugins are the PodGroups of scheduler-plugins, scheduling.x-k8s.io/v1alpha1.
	SchedulerPlugins SchedulerPluginsAPI `json:"schedulerPlugins,omitzero"`
	// native are the PodGroups of Kubernetes itself, scheduling.k8s.io/v1beta1 and v1alpha2.
	Native NativeAPI `json:"native,omitzero"`
	// volcano are the PodGroups of Volcano, scheduling.volcano.sh/v1beta1.
	Volcano VolcanoAPI `json:"volcano,omitzero"`
}

// GroupingRule says which Pods are a gang, without a PodGroup.
//
// +enum
type GroupingRule string

const (
	// RuleAnnotations: Pods of one name in the annotation scheduling.lockstep.dev/group, or of
	// one owner if they have the annotation scheduling.lockstep.dev/group-by.
	RuleAnnotations GroupingRule = "Annotations"
	// RuleKueuePods: the plain Pods of a pod group of Kueue, except Pods that are served or admitted one by one.
	RuleKueuePods GroupingRule = "KueuePods"
	// RuleMinAvailable: Pods of one name in the label pod-group.scheduling.sigs.k8s.io/name that
	// have the label pod-group.scheduling.sigs.k8s.io/min-available, unless there is a PodGroup
	// of scheduler-plugins of that name.
	RuleMinAvailable GroupingRule = "MinAvailable"
	// RuleJobSets: the Pods of a JobSet, in labelled namespaces.
	RuleJobSets GroupingRule = "JobSets"
	// RuleLeaderWorkerSets: each replica of a LeaderWorkerSet, in labelled namespaces.
	RuleLeaderWorkerSets GroupingRule = "LeaderWorkerSets"
	// RuleJobs: the Pods of a Job, in labelled namespaces.
	RuleJobs GroupingRule = "Jobs"
)

// GroupingRules are all rules. If several fit a Pod, the first one counts.
func GroupingRules() []GroupingRule {
	return []GroupingRule{RuleAnnotations, RuleKueuePods, RuleMinAvailable, RuleJobSets, RuleLeaderWorkerSets, RuleJobs}
}

// Reservations say how much room of the cluster is reserved for groups, and for which members that are still to come.
type Reservations struct {
	// maxPercent is how much of each resource of the cluster is reserved at most for all groups together, 0 to 100. What
	// preemption makes room for counts, but is not limited. A larger group that waits for long has a reservation if
	// there is no other ahead. 0 reserves nothing except for preemption. Default 50.
	MaxPercent *int32 `json:"maxPercent,omitempty"`

	// idlePercent is the largest part of the cluster that may be idle for groups with an unknown start, in percent, 1 to
	// 100. It is a mean over time, for all such groups together. No other work may use the nodes that are reserved for such
	// a group. With a larger value, large groups without run times start sooner. With a smaller value, all other work
	// starts sooner. Default 2.
	IdlePercent *int32 `json:"idlePercent,omitempty"`

	// membersToCome says for which members that come after the start of their group room is reserved. The groups
	// announce such members by minResources.
	MembersToCome MembersToCome `json:"membersToCome,omitzero"`
}

// MembersToCome says for which members that come after the start of their group room is reserved.
type MembersToCome struct {
	// namespaces are those in which groups may announce members, at most 1000; "*" is all namespaces. In others
	// minResources mean nothing. Default none.
	Namespaces []string `json:"namespaces,omitempty"`

	// timeout is for how long room is reserved from the start of a group, up to 24h. Groups may only ask for less. 0 reserves
	// none: whether there is room for all is only looked at when a group starts. Default 10m.
	Timeout *metav1.Duration `json:"timeout,omitempty"`

	// namespaceMaxPercent is how much of each resource of the cluster is reserved at most for members to come of all
	// groups of one namespace, 1 to 100. Default 50.
	NamespaceMaxPercent *int32 `json:"namespaceMaxPercent,omitempty"`

	// preemption says that Pods of lower priority may be evicted for members that are still to
	// come. Default false.
	Preemption *bool `json:"preemption,omitempty"`
}

// SchedulerPluginsAPI says whether the PodGroups of scheduler-plugins are served.
type SchedulerPluginsAPI struct {
	// mode is Auto, On or Off. Default Auto.
	Mode PodGroupAPIMode `json:"mode,omitempty"`
}

// NativeAPI says whether the PodGroups of Kubernetes itself are served.
type NativeAPI struct {
	// mode is Auto, On or Off. If the feature gate GenericWorkload is on in the scheduler, its own
	// code serves them, whatever the mode. Default Auto.
	Mode PodGroupAPIMode `json:"mode,omitempty"`
}

// VolcanoAPI says whether the PodGroups of Volcano are served, and how.
type VolcanoAPI struct {
	// mode is Auto, On or Off. Auto is for schedulers with a profile named volcano alone: without
	// one it is Off. Default Auto.
	Mode PodGroupAPIMode `json:"mode,omitempty"`
	// claim says which groups have their status written although no Pod names them yet: All or None. Some tools create
	// no Pods before the status of their group says that it may have some. Default All.
	Claim ClaimPolicy `json:"claim,omitempty"`
	// unlinkedPods says what becomes of Pods that name the scheduler volcano and no group:
	// Schedule or Wait. Default Schedule.
	UnlinkedPods UnlinkedPolicy `json:"unlinkedPods,omitempty"`
	// tiers are the node labels that stand for tiers of the network topology, at most 16.
	Tiers []Tier `json:"tiers,omitempty"`
}

// UnlinkedPolicy says what becomes of Pods that name a scheduler of Volcano's and no group.
//
// +enum
type UnlinkedPolicy string

const (
	// UnlinkedSchedule: they are ordinary Pods.
	UnlinkedSchedule UnlinkedPolicy = "Schedule"
	// UnlinkedWait: such Pods wait until they name a group. A controller of Volcano's makes groups for such Pods, and
	// adds the annotation.
	UnlinkedWait UnlinkedPolicy = "Wait"
)

// Tier is a tier of the network topology of the cluster's nodes.
type Tier struct {
	// tier is the number, from 0: the higher, the farther apart are the nodes.
	Tier int32 `json:"tier"`
	// name is the name, if groups use one.
	Name string `json:"name,omitempty"`
	// key is the label that the nodes of one domain of the tier have in common.
	Key string `json:"key"`
}

// ClaimPolicy says which groups without Pods are this scheduler's.
//
// +enum
type ClaimPolicy string

const (
	// ClaimAll: all groups.
	ClaimAll ClaimPolicy = "All"
	// ClaimNone: none. A group is this scheduler's once a Pod that names it names a scheduler
	// that is served here.
	ClaimNone ClaimPolicy = "None"
)

// PodGroupAPIMode says when PodGroups of another project are served.
//
// +enum
type PodGroupAPIMode string

const (
	// PodGroupAPIAuto: if the API server lets the scheduler list these groups, or would if it served them. Pods that name
	// such a group wait while the API server does not serve the kind. Without the right to list the kind such Pods are
	// ordinary.
	PodGroupAPIAuto PodGroupAPIMode = "Auto"
	// PodGroupAPIOn: always. Pods that name such a group wait while the API server does not serve the kind.
	PodGroupAPIOn PodGroupAPIMode = "On"
	// PodGroupAPIOff: never. References of Pods to such groups mean nothing.
	PodGroupAPIOff PodGroupAPIMode = "Off"
)
