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

// Config is what Gangs asks others. All functions are set. They are called with the lock of Gangs held, and maybe with that
// of the scheduling queue: none may block, nor call Gangs or the queue.
type Config struct {
	Rules
	// Now returns the time.
	Now func() time.Time
	// Current returns a Pod as it is by now, ended or not, nil if it is gone. SetPod and DeletePod may be behind that.
	Current func(pod *corev1.Pod) *corev1.Pod
}
