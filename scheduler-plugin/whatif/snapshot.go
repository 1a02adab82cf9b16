// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Snapshot is what is known of a cluster at one time. Its contents are never changed, so several questions may share a
// Snapshot.
type Snapshot struct {
	// Now is that moment.
	Now   time.Time
	Nodes []*corev1.Node
	// Pods are the Pods of the whole cluster, or as many as could be read. A Pod that the scheduler has assumed on a
	// node has that node in its spec.
	Pods   []*corev1.Pod
	Groups []*dialect.Group
	// Classes are the PriorityClasses by name, nil if unknown. They are needed for new Pods and for groups: existing
	// Pods have their priority in their spec.
	Classes map[string]PriorityClass
	// Links says which gang a Pod names. Nil: only Lockstep's own label counts.
	Links *dialect.Links
	// Serves reports whether this scheduler places Pods with a scheduler name. Nil means that this is unknown; then it
	// is assumed for all Pods.
	Serves func(schedulerName string) bool
	// Over reports that the time for computing expected starts is over. Nil: never.
	Over func() bool
	// Runs returns how long a gang that has already run for a time, `ran`, will run in all: the quantile `part` (from 0
	// to below 1) of the run times of similar gangs. Nil: the estimate in the group counts.
	Runs func(group *dialect.Group, ran time.Duration, part float64) time.Duration
	// NoNodes reports that nodes could not be read. SomePods reports that not all Pods could be read, so that nodes
	// look emptier than they are.
	NoNodes, SomePods bool
	// NoPods and NoGroups report that Pods or PodGroups could not even be read in the user's own namespace.
	NoPods, NoGroups bool
	// Lacks are sentences on what could not be read, for the answers.
	Lacks []string
	// LacksOf are sentences on single gangs, for the answers: what of the gang's requests is unknown.
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

// serves reports whether this scheduler places Pods with a scheduler name, as far as is known. A Pod that does not
// exist yet may have no scheduler name; then the result is true.
func (s *Snapshot) serves(schedulerName string) bool {
	return s.Serves == nil || schedulerName == "" || s.Serves(schedulerName)
}

// isOver reports whether the time is over.
func (s *Snapshot) isOver() bool { return s.Over != nil && s.Over() }
