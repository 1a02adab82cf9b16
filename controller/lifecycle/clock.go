// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// HasTimesToCome says whether something waits since a time that is still to come. So it is in a status that
// a controller has left whose clock is ahead of that of its successor.
func HasTimesToCome(status *frameworkv1.FrameworkStatus, now time.Time) bool {
	if status == nil {
		return false
	}
	isToCome := func(at *metav1.Time) bool { return at != nil && at.After(now) }
	if group := status.AttemptStatus.PodGroup; isToCome(&status.TransitionTime) || group != nil && (isToCome(group.CreationTime) || isToCome(group.UnknownSince)) {
		return true
	}
	return slices.ContainsFunc(status.AttemptStatus.TaskRoleStatuses, func(role *frameworkv1.TaskRoleStatus) bool {
		return slices.ContainsFunc(role.TaskStatuses, func(task *frameworkv1.TaskStatus) bool {
			return isToCome(&task.TransitionTime) || isToCome(task.AttemptStatus.PreparingSince)
		})
	})
}

// over says whether a span since a persisted time is over, and, if it is not, when it
// will be. Who waits for it asks to be woken then.
func (d *decision) over(since metav1.Time, span time.Duration) (over bool, at time.Time) {
	from := since.Time
	if !d.Resumed.IsZero() && from.After(d.clock) {
		from = d.Resumed
	}
	if at = from.Add(span); d.clock.Before(at) {
		return false, at
	}
	return true, time.Time{}
}
