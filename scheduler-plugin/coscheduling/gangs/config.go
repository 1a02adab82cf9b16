// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// Rules judge Pods.
type Rules struct {
	// Links finds the gang that a Pod names. If it is nil, only Lockstep's own API is on.
	Links *dialect.Links
	// Serves reports whether this scheduler places Pods with a scheduler name.
	Serves func(schedulerName string) bool
	// Claims reports for a PodGroup API whether this scheduler writes the status of groups without Pods. Nil: it does
	// so for no API.
	Claims func(d dialect.Dialect) bool
	// ClassValue returns the value of a PriorityClass, false if none with the name exists.
	ClassValue func(name string) (int32, bool)
	// ClassKey returns a key that is equal for members with the same role and the same needs of a node.
	ClassKey func(pod *corev1.Pod, role string) string
}

// Config has the functions that Gangs calls. All must be set, except where nil has a meaning. Gangs calls these
// functions with its lock held, and perhaps with the lock of kube-scheduler's queue held. So no function may block, or
// call Gangs or kube-scheduler's queue.
type Config struct {
	Rules
	// Now returns the time.
	Now func() time.Time
	// Current returns the present state of a Pod, nil if the Pod is gone. The state may be newer than what SetPod and
	// DeletePod have reported.
	Current func(pod *corev1.Pod) *corev1.Pod
}
