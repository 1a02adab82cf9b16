// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Rules are by what Pods are judged.
type Rules struct {
	// Links read which gang a Pod names; nil for the dialect Own alone.
	Links *dialect.Links
	// Serves says whether Pods with this scheduler name are placed by this scheduler.
	Serves func(schedulerName string) bool
	// Claims says whether groups of a dialect of which there are no Pods are this scheduler's to
	// tell about; nil for never.
	Claims func(d dialect.Dialect) bool
	// ClassValue is the value of a PriorityClass, false if there is none of the name.
	ClassValue func(name string) (int32, bool)
	// ClassKey is equal for members that need the same of a node and have the same role.
	ClassKey func(pod *corev1.Pod, role string) string
}

// Config is what Gangs asks others, and what it asks of them. All functions are set. They are
// called with the lock of Gangs held, and maybe with that of the scheduling queue: none may
// block, nor call Gangs or the queue.
type Config struct {
	Rules
	// Now is what time it is.
	Now func() time.Time
	// Current returns a Pod as it is by now, ended or not, nil if it is gone. SetPod and DeletePod may be behind that.
	Current func(pod *corev1.Pod) *corev1.Pod

	// Stir says that somebody may be next, or that room may be kept for nobody.
	Stir func()
	// Report asks for what is known of a gang to be told, in d.
	Report func(gang dialect.Key, d time.Duration)
	// Dissolve asks for the rest of a gang to be evicted: preemption has taken a member,
	// and the gang can't go on. The rest does not count for the gang from then on.
	// SetLeaving takes that back for a Pod that could not be evicted.
	Dissolve func(group *dialect.Group, rest []*corev1.Pod)
	// BoundElsewhere tells of a member that waited here, and was bound by somebody else, and since
	// when it is known. Only who leads is told.
	BoundElsewhere func(pod *corev1.Pod, known time.Time)
	// Idle tells of a gang that is not complete, of which members wait.
	Idle func(gang dialect.Key)
}
