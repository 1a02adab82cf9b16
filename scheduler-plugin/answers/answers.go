// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers has the answers to three questions about gangs: why a gang waits, what would happen under an
// assumption, and which gang is next in the queue. The types are JSON and make no decisions; package whatif fills them.
// All lists are bounded, with a count of the entries that were left out.
package answers

import (
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// The limits of lists in answers.
const (
	// MaxPlacements limits Simulation.Placements.
	MaxPlacements = 1000
	// MaxVictims limits Simulation.Victims.
	MaxVictims = 1000
	// MaxTasks limits Why.Tasks.
	MaxTasks = 1000
	// MaxQueue limits Queue.Gangs.
	MaxQueue = 1000
	// MaxAwaits limits ExpectedStart.Awaits.
	MaxAwaits = 3
	// MaxReasons limits Obstacle.Reasons.
	MaxReasons = 5
)

// Reason is the most important reason for which a gang is not placed.
type Reason string

// The reasons why a gang waits, in the order in which they are checked. The first one that holds is the answer.
const (
	// ReasonNotFound: no PodGroup with the name exists, or the caller may not read the PodGroup.
	ReasonNotFound Reason = "NotFound"
	// ReasonEnded: all members have ended.
	ReasonEnded Reason = "Ended"
	// ReasonHalted: the scheduler places no member of the group, whatever room there is.
	ReasonHalted Reason = "Halted"
	// ReasonContainers: the gang is placed, and containers of some tasks do not start, for instance because an image or
	// a volume is missing.
	ReasonContainers Reason = "ContainersWait"
	// ReasonPlaced: the gang has its minimum on nodes.
	ReasonPlaced Reason = "Placed"
	// ReasonNotEnoughTasks: fewer Pods than the minimum exist, or are free of scheduling gates. Also a reason of
	// PodGroups' conditions.
	ReasonNotEnoughTasks Reason = schedulingv1alpha1.ReasonNotEnoughTasks
	// ReasonPreempting: the gang has room as soon as the Pods that were evicted for it have ended.
	ReasonPreempting Reason = "Preempting"
	// ReasonNotEnoughResources: the gang has no room, and would have none without the gangs ahead of it in the queue.
	// Also a reason of PodGroups' conditions.
	ReasonNotEnoughResources Reason = schedulingv1alpha1.ReasonNotEnoughResources
	// ReasonNext: the scheduler knows of no obstacle. The gang has room and is about to be scheduled.
	ReasonNext Reason = "Next"
	// ReasonUnknown: the gang waits, and too little is readable to say why.
	ReasonUnknown Reason = "Unknown"
)

// Why says why a gang is not running.
type Why struct {
	Namespace string `json:"namespace"`
	// Name is the name of the PodGroup.
	Name string `json:"name"`
	// Reason is the most important reason, and Message says the same in one line.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Next is the next step for a user, empty if there is nothing to do but wait.
	Next string `json:"next,omitempty"`
	// Evidence is what the answer is based on, the most important first.
	Evidence []string `json:"evidence,omitempty"`
	// Tasks are members with a problem of their own, sorted by name, as far as the caller may list Pods. MoreTasks
	// counts those left out.
	Tasks     []Task `json:"tasks,omitempty"`
	MoreTasks int    `json:"moreTasks,omitempty"`
	// Ahead is how many gangs are ahead in the queue. Nil if the gang does not wait.
	Ahead *int `json:"ahead,omitempty"`
	// ExpectedStart is when the gang is expected to start. Nil if the gang does not wait, or nothing is known.
	ExpectedStart *ExpectedStart `json:"expectedStart,omitempty"`
	// Place is where the waiting members would go now, or why there is no place. Nil if no member waits.
	Place *Simulation `json:"place,omitempty"`
	// Unknown is what the answer does not take into account, in sentences.
	Unknown []string `json:"unknown,omitempty"`
}

// Task is a member of a gang.
type Task struct {
	Pod  string `json:"pod"`
	Role string `json:"role,omitempty"`
	// Reason is a word, such as ImagePullBackOff or SchedulingGated.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Simulation says where the unplaced members of a gang would go.
type Simulation struct {
	// Fits: the minimum has room now. FitsAfterPreemption: the minimum has room once the Victims are evicted, or once
	// Pods that are already ending have ended. Both are false if there is no room either way, or if the scheduler does
	// not know.
	Fits                bool `json:"fits"`
	FitsAfterPreemption bool `json:"fitsAfterPreemption,omitempty"`
	// Message says the same in one line.
	Message string `json:"message"`
	// Members is how many members are to be placed; Needed, how many of them must be placed; Room, how many of the
	// needed members find a place.
	Members int `json:"members"`
	Needed  int `json:"needed"`
	Room    int `json:"room"`
	// Placements is where members would go, by node. MorePlacements counts those left out.
	Placements     []Placement `json:"placements,omitempty"`
	MorePlacements int         `json:"morePlacements,omitempty"`
	// Obstacle is what keeps the gang out, nil if Fits.
	Obstacle *Obstacle `json:"obstacle,omitempty"`
	// Victims are the Pods that would be evicted, as far as the caller may read them. HiddenVictims counts the Pods
	// that are not in the list.
	Victims       []Victim `json:"victims,omitempty"`
	HiddenVictims int      `json:"hiddenVictims,omitempty"`
	// Unknown is what the answer does not take into account, in sentences.
	Unknown []string `json:"unknown,omitempty"`
}

// Placement is a number of members of a role on a node.
type Placement struct {
	Node  string `json:"node"`
	Role  string `json:"role,omitempty"`
	Count int    `json:"count"`
}

// Obstacle is what keeps a gang out.
type Obstacle struct {
	// Role is the role of the members that find no place, empty if they have no role.
	Role string `json:"role,omitempty"`
	// Resource is the scarcest resource for these members, and Missing how much more of the resource is needed at
	// least, as a quantity. Both are empty if no single resource is the reason.
	Resource string `json:"resource,omitempty"`
	Missing  string `json:"missing,omitempty"`
	// Nodes is how many nodes exist. Eligible is how many of them may hold one of these members, if resources are left
	// aside. Offering is how many eligible nodes have any of Resource at all, free or in use.
	Nodes    int `json:"nodes"`
	Eligible int `json:"eligible"`
	Offering int `json:"offering"`
	// RoomIfEmpty is how many of the needed members would find a place if everything else ended, except DaemonSets and
	// static Pods. If RoomIfEmpty is less than Needed, waiting does not help.
	RoomIfEmpty int `json:"roomIfEmpty"`
	// TooLarge is set if no node is large enough for one member, even when the node is empty.
	TooLarge *TooLarge `json:"tooLarge,omitempty"`
	// Domain is the best topology domain, as key=value, if all members have to be in one. MissingLabel is the key of a
	// topology that no node has as a label.
	Domain       string `json:"domain,omitempty"`
	MissingLabel string `json:"missingLabel,omitempty"`
	// Reasons are why nodes may not hold one of these members, each with the number of nodes, the most frequent first.
	Reasons []NodesReason `json:"reasons,omitempty"`
}

// TooLarge says that a member asks for more than any eligible node has.
type TooLarge struct {
	Role string `json:"role,omitempty"`
	// Resource is the resource of which one member requests more than any node has: the member requests Requested, and
	// the largest node has Largest. Resource is empty if each resource alone is large enough on some node, but no node
	// has enough of all of them.
	Resource  string `json:"resource,omitempty"`
	Requested string `json:"requested,omitempty"`
	Largest   string `json:"largest,omitempty"`
}

// NodesReason is why a number of nodes may not hold a member.
type NodesReason struct {
	Nodes  int    `json:"nodes"`
	Reason string `json:"reason"`
}

// Victim is a Pod that would be evicted.
type Victim struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	Node      string `json:"node"`
	// Group is the PodGroup of the Pod, empty for none.
	Group    string `json:"group,omitempty"`
	Priority int32  `json:"priority"`
}

// Queue is the waiting gangs, in the order in which they are tried.
type Queue struct {
	// Gangs are the gangs that the caller may read.
	Gangs []Waiting `json:"gangs"`
	// Others counts gangs that the caller may not read, and those left out of the list.
	Others int `json:"others,omitempty"`
	// Unknown is what the answer does not take into account, in sentences.
	Unknown []string `json:"unknown,omitempty"`
}

// Waiting is a gang in the queue.
type Waiting struct {
	// Rank is the gang's place in the queue, from 1. Gangs that the caller may not read count, too.
	Rank int `json:"rank"`
	// Kind is the kind of the gang with its API group, such as PodGroup.scheduling.lockstep.dev, or Pod for Pods
	// without a group.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
	// Created is when the PodGroup was created.
	Created time.Time `json:"created"`
	// Members is how many members wait, Minimum how many have to be placed together.
	Members int `json:"members"`
	Minimum int `json:"minimum"`
	// Reason is why the last scheduling cycle did not place the gang, empty if there was none or the reason is unknown.
	Reason string `json:"reason,omitempty"`
	// ExpectedStart is when the gang is expected to start. Nil if nothing is known.
	ExpectedStart *ExpectedStart `json:"expectedStart,omitempty"`
}

// ExpectedStart is when a gang is expected to start, given the present queue.
type ExpectedStart struct {
	// Latest is when the gang starts if all work ahead runs as long as its limits allow. Probable is when the gang
	// probably starts, by estimates. Zero if unknown.
	Latest   time.Time `json:"latest,omitzero"`
	Probable time.Time `json:"probable,omitzero"`
	// Awaits are the running gangs that have to end before the gang can start, the last to end first. MoreAwaited
	// counts the gangs that the caller may not read, those left out of the list, and Pods without a gang.
	Awaits      []string `json:"awaits,omitempty"`
	MoreAwaited int      `json:"moreAwaited,omitempty"`
}
