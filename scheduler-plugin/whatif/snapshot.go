// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
)

// Snapshot is what is known of a cluster at one moment. Nobody changes what is in it, so several
// questions may share one.
type Snapshot struct {
	// Now is that moment.
	Now   time.Time
	Nodes []*corev1.Node
	// Pods are those of the whole cluster, or as many as could be read. Those that the scheduler has
	// assumed on a node name it.
	Pods   []*corev1.Pod
	Groups []*dialect.Group
	// Classes are the PriorityClasses by name; nil if they are not known. What they have given to Pods is in
	// the Pods.
	Classes map[string]PriorityClass
	// Links say which gang a Pod names. Nil reads Lockstep's own label alone.
	Links *dialect.Links
	// Serves says whether Pods with a scheduler name are placed here. Nil if that is not known: then all are.
	Serves func(schedulerName string) bool
	// Known is what the scheduler alone knows of gangs, nil if it was not asked.
	Known map[dialect.Key]Known
	// Held is room that is kept for gangs. It is complete if Known is not nil.
	Held []Held
	// NoNodes says that nodes could not be read, and SomePods that not all Pods could: then nodes look
	// emptier than they are.
	NoNodes, SomePods bool
	// NoPods and NoGroups say that not even those of the asker's own namespace could be read.
	NoPods, NoGroups bool
	// HidesNodes keeps out of answers what nodes are like: their taints and labels, which may tell what they
	// are for. It is for those who ask and may not list nodes.
	HidesNodes bool
	// HidesPods keeps out of answers what single Pods of the gang are like, and their names. It is for those who may
	// get the gang and not list its Pods.
	HidesPods bool
	// Lacks are sentences on what could not be read, for the answers.
	Lacks []string
	// LacksOf are such sentences on single gangs: what is not known of what they ask for.
	LacksOf map[dialect.Key][]string
	// Over says that nobody waits for the answer any more, which then need not be worked out. Nil: somebody does.
	Over func() bool

	// templates are from which of some templates Pods are made that are not there yet.
	templates map[*corev1.Pod]int
}

// Known is what only the scheduler knows of a gang.
type Known struct {
	// Refusal is what the gang was told last, empty if nothing.
	Refusal string
	// BackOffUntil is the end of its back-off, zero if it is in none.
	BackOffUntil time.Time
}

// Held is room on a node that is kept for a member of a gang.
type Held struct {
	// For is the gang, and Pod the member, which names the node.
	For dialect.Key
	Pod *corev1.Pod
	// KeptFrom says whether a gang behind that one has to leave the room alone. Nil: each has.
	KeptFrom func(behind Behind) bool
}

// Behind is a gang that is behind one for which room is kept.
type Behind struct {
	Rank line.Rank
	// Broken says that it has members placed, but too few.
	Broken bool
}

// isKeptFrom says whether a gang has to leave the room alone, which is behind in line.
func (h *Held) isKeptFrom(g *gang) bool {
	return h.KeptFrom == nil || h.KeptFrom(Behind{Rank: g.rank, Broken: g.isBroken()})
}

// Group is a group of the Snapshot, nil if there is none of that key.
func (s *Snapshot) Group(key dialect.Key) *dialect.Group {
	for _, group := range s.Groups {
		if group.Key == key {
			return group
		}
	}
	return nil
}

// serves says whether Pods with a scheduler name are placed here, as far as that is known. One that is not there yet may
// have no name.
func (s *Snapshot) serves(schedulerName string) bool {
	return s.Serves == nil || schedulerName == "" || s.Serves(schedulerName)
}

// isOver says whether nobody waits for the answer any more.
func (s *Snapshot) isOver() bool { return s.Over != nil && s.Over() }

// holdsFor says whether room is held for a gang.
func (s *Snapshot) holdsFor(key dialect.Key) bool {
	for i := range s.Held {
		if s.Held[i].For == key {
			return true
		}
	}
	return false
}

// notAsked is what an answer does not know without the scheduler.
const notAsked = "the scheduler was not asked: its back-offs and reservations are not known"

// unknown are the sentences on what a Snapshot lacks.
func (s *Snapshot) unknown() []string {
	all := append([]string(nil), s.Lacks...)
	if s.Known == nil {
		all = append(all, notAsked)
	}
	return all
}
