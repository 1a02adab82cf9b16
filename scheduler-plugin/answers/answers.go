// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answers has what is answered to three questions about gangs: why one waits, what would
// happen if, and who is next in the queue. The types are JSON and hold no decision; package whatif fills
// them. All lists are bounded: where one was cut, a count beside it says how many were left out.
package answers

import (
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// The bounds of lists in answers.
const (
	// MaxPlacements bounds Simulation.Placements.
	MaxPlacements = 1000
	// MaxVictims bounds Simulation.Victims.
	MaxVictims = 1000
	// MaxTasks bounds Why.Tasks.
	MaxTasks = 1000
	// MaxQueue bounds Line.Gangs.
	MaxQueue = 1000
	// MaxAwaits bounds ExpectedStart.Awaits.
	MaxAwaits = 3
	// MaxReasons bounds Obstacle.Reasons.
	MaxReasons = 5
)

// Reason is the one reason that counts most for a gang not being placed.
type Reason string

// The reasons, in the order in which they are looked for: the first that holds is the answer.
const (
	// ReasonNotFound: there is no PodGroup of the name, or it may not be read.
	ReasonNotFound Reason = "NotFound"
	// ReasonEnded: all members have ended.
	ReasonEnded Reason = "Ended"
	// ReasonHalted: the scheduler places no member of the group, whatever room there is.
	ReasonHalted Reason = "Halted"
	// ReasonContainers: the gang is placed, and containers of some tasks do not start: an image or
	// a volume is missing, say.
	ReasonContainers Reason = "ContainersWait"
	// ReasonPlaced: the gang has its minimum on nodes.
	ReasonPlaced Reason = "Placed"
	// ReasonNotEnoughTasks: fewer Pods than the minimum exist, or are free of scheduling gates. PodGroups have this
	// reason in their conditions, too.
	ReasonNotEnoughTasks Reason = schedulingv1alpha1.ReasonNotEnoughTasks
	// ReasonPreempting: there is room as soon as Pods have ended that were evicted for the gang.
	ReasonPreempting Reason = "Preempting"
	// ReasonNotEnoughResources: there is no room, whoever is ahead. PodGroups have this reason in their conditions, too.
	ReasonNotEnoughResources Reason = schedulingv1alpha1.ReasonNotEnoughResources
	// ReasonNext: there is room by what is known; the gang is to be planned next.
	ReasonNext Reason = "Next"
	// ReasonUnknown: the gang waits, and too little may be read to tell why.
	ReasonUnknown Reason = "Unknown"
)

// Why says why a gang is not running.
type Why struct {
	Namespace string `json:"namespace"`
	// Name is that of the PodGroup.
	Name string `json:"name"`
	// Reason is the one that counts most, and Message says it in one line.
	Reason  Reason `json:"reason"`
	Message string `json:"message"`
	// Next is what can be done about it, empty if there is nothing to do but to wait.
	Next string `json:"next,omitempty"`
	// Evidence is what the answer rests on, the most important first.
	Evidence []string `json:"evidence,omitempty"`
	// Tasks are members of which something else is known than of the gang, in the order of their
	// names, as far as the caller may list Pods; MoreTasks is how many more there are.
	Tasks     []Task `json:"tasks,omitempty"`
	MoreTasks int    `json:"moreTasks,omitempty"`
	// Ahead is how many gangs in the queue are ahead of this one. Nil if it does not wait.
	Ahead *int `json:"ahead,omitempty"`
	// ExpectedStart is when the gang is expected to start. Nil if it does not wait, or nothing is known.
	ExpectedStart *ExpectedStart `json:"expectedStart,omitempty"`
	// Place is where the waiting members would go now, or why they can't. Nil if none waits.
	Place *Simulation `json:"place,omitempty"`
	// Unknown is what the answer does not take into account, each in a sentence.
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

// Simulation says where the members of a gang would go that have no place yet.
type Simulation struct {
	// Fits says that the minimum has room now, and FitsAfterPreemption that it has if the Victims
	// are evicted, or when Pods have ended that are ending now. Both are false if it has no room either way, or that is not known.
	Fits                bool `json:"fits"`
	FitsAfterPreemption bool `json:"fitsAfterPreemption,omitempty"`
	// Message says it in one line.
	Message string `json:"message"`
	// Members are to be placed, Needed of them at least; Room is how many of the needed find a place.
	Members int `json:"members"`
	Needed  int `json:"needed"`
	Room    int `json:"room"`
	// Placements is where members would go, by node, with MorePlacements left out.
	Placements     []Placement `json:"placements,omitempty"`
	MorePlacements int         `json:"morePlacements,omitempty"`
	// Obstacle is what keeps the gang out, nil if it Fits.
	Obstacle *Obstacle `json:"obstacle,omitempty"`
	// Victims are the Pods that would be evicted, as far as the caller may read them. HiddenVictims
	// counts the others, and those beyond the bound of the list.
	Victims       []Victim `json:"victims,omitempty"`
	HiddenVictims int      `json:"hiddenVictims,omitempty"`
	// Unknown is what the answer does not take into account, each in a sentence.
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
	// Role is that of the members that find no place, empty if they have none.
	Role string `json:"role,omitempty"`
	// Resource is the one that is scarcest for them, and Missing how much more of it is needed at
	// least, as a quantity. Both are empty if no single resource is the reason.
	Resource string `json:"resource,omitempty"`
	Missing  string `json:"missing,omitempty"`
	// Nodes is how many nodes there are; Eligible how many of them may hold such a member, resources
	// aside; Offering how many of these have any of Resource at all, free or taken.
	Nodes    int `json:"nodes"`
	Eligible int `json:"eligible"`
	Offering int `json:"offering"`
	// RoomIfEmpty is how many of the needed members would find a place if all work ended but DaemonSets, static Pods and
	// the gang itself. If it is less than Needed, waiting does not help.
	RoomIfEmpty int `json:"roomIfEmpty"`
	// TooLarge is set if no node is large enough for one member, even when it is empty.
	TooLarge *TooLarge `json:"tooLarge,omitempty"`
	// Domain is the best topology domain, as key=value, if all members have to be in one; MissingLabel is the key of
	// a topology that no node has as a label.
	Domain       string `json:"domain,omitempty"`
	MissingLabel string `json:"missingLabel,omitempty"`
	// Reasons are why nodes may not hold such a member, the most frequent first, with how often.
	Reasons []NodesReason `json:"reasons,omitempty"`
}

// TooLarge says that a member asks for more than any node has that may hold it.
type TooLarge struct {
	Role string `json:"role,omitempty"`
	// Resource is the one of which Requested is asked for, and of which the Largest node has less. It is empty if each
	// resource has a node that has enough of it, but no node has enough of all.
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

// Queue is the gangs that wait, the one that is next first.
type Queue struct {
	// Gangs are those that the caller may read.
	Gangs []Waiting `json:"gangs"`
	// Others counts those that he may not, and those beyond the bound of the list.
	Others int `json:"others,omitempty"`
	// Unknown is what the answer does not take into account, each in a sentence.
	Unknown []string `json:"unknown,omitempty"`
}

// Waiting is a gang in the queue.
type Waiting struct {
	// Rank is its place in the queue, from 1. Those that may not be read count.
	Rank int `json:"rank"`
	// Kind is that of the gang with its API group, such as PodGroup.scheduling.lockstep.dev, or Pod for Pods without a group.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Priority  int32  `json:"priority"`
	// Created is when its PodGroup was created.
	Created time.Time `json:"created"`
	// Members wait, Minimum is how many have to be placed together.
	Members int `json:"members"`
	Minimum int `json:"minimum"`
	// Reason is what it was told last, empty if it had no cycle yet or that is not known.
	Reason string `json:"reason,omitempty"`
	// ExpectedStart is when the gang is expected to start. Nil if nothing is known.
	ExpectedStart *ExpectedStart `json:"expectedStart,omitempty"`
}

// ExpectedStart is when a gang is expected to start, for the queue as it stands.
type ExpectedStart struct {
	// Latest is when the gang starts if all work ahead of it uses the whole of its limits, and Probable if estimates hold. Zero is unknown.
	Latest   time.Time `json:"latest,omitzero"`
	Probable time.Time `json:"probable,omitzero"`
	// Awaits are the gangs that run where the gang is to start, and end before: the last one to end first. MoreAwaited counts gangs
	// that the caller may not read, those beyond the bound of the list, and Pods without a gang.
	Awaits      []string `json:"awaits,omitempty"`
	MoreAwaited int      `json:"moreAwaited,omitempty"`
}
