// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Snapshot is what is known of a cluster at one moment. Its contents are never changed, so several questions may share
// one.
type Snapshot struct {
	// Now is that moment.
	Now   time.Time
	Nodes []*corev1.Node
	// Pods are the Pods of the whole cluster, or as many as could be read. A Pod that the scheduler has assumed on a
	// node has the node's name.
	Pods   []*corev1.Pod
	Groups []*dialect.Group
	// Classes are the PriorityClasses by name; nil if unknown. What a class has given to existing Pods is in the Pods.
	Classes map[string]PriorityClass
	// Links says which gang a Pod names. Nil: only Lockstep's own label counts.
	Links *dialect.Links
	// Serves reports whether Pods with a scheduler name are placed here. Nil: unknown, and all count as placed here.
	Serves func(schedulerName string) bool
	// Over reports that the time for computing expected starts is over. Nil: never.
	Over func() bool
	// Runs returns how long a gang that has run for a time will run in all, at most, in this part of all cases, from 0 to
	// below 1, if the caller knows more than the estimate. Nil: the estimate counts.
	Runs func(group *dialect.Group, ran time.Duration, part float64) time.Duration
	// NoNodes means that nodes could not be read. SomePods means that not all Pods could be read, so nodes look emptier
	// than they are.
	NoNodes, SomePods bool
	// NoPods and NoGroups mean that not even those of the user's own namespace could be read.
	NoPods, NoGroups bool
	// Lacks are sentences on what could not be read, for the answers.
	Lacks []string
	// LacksOf are such sentences on single gangs, about parts of their requests that are unknown.
	LacksOf map[dialect.Key][]string
}

// Group returns a group of the Snapshot, nil if there is none with that key.
func (s *Snapshot) Group(key dialect.Key) *dialect.Group {
	for _, group := range s.Groups {
		if group.Key == key {
			return group
		}
	}
	return nil
}

// serves reports whether Pods with a scheduler name are placed here, as far as is known. A Pod that does not exist yet
// may have no name.
func (s *Snapshot) serves(schedulerName string) bool {
	return s.Serves == nil || schedulerName == "" || s.Serves(schedulerName)
}

// isOver reports whether the time is over.
func (s *Snapshot) isOver() bool { return s.Over != nil && s.Over() }
