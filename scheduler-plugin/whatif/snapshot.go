// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
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
	// Over says that there is no more time to find out when gangs start. Nil: there is.
	Over func() bool
	// Runs says how long a gang will probably run that has run for a time, if the caller knows better than its estimate. Nil: nobody does.
	Runs func(group *dialect.Group, ran time.Duration) time.Duration
	// NoNodes says that nodes could not be read, and SomePods that not all Pods could: then nodes look
	// emptier than they are.
	NoNodes, SomePods bool
	// NoPods and NoGroups say that not even those of the asker's own namespace could be read.
	NoPods, NoGroups bool
	// Lacks are sentences on what could not be read, for the answers.
	Lacks []string
	// LacksOf are such sentences on single gangs: what is not known of what they ask for.
	LacksOf map[dialect.Key][]string
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

// isOver says whether there is no more time.
func (s *Snapshot) isOver() bool { return s.Over != nil && s.Over() }
