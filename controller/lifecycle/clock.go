// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// TakenOver records what a controller knows of the times in a status that another controller has written. Such times
// may be in the future, if the other controller's clock was ahead.
type TakenOver struct {
	// At is when this controller first saw the status, by the controller's own clock.
	At time.Time
	// toCome are the times that were in the future at At, in seconds since 1970. Times in a status are whole seconds.
	toCome sets.Set[int64]
}

// TakeOver looks for times to come in a status that a controller finds.
func TakeOver(status *frameworkv1.FrameworkStatus, now time.Time) TakenOver {
	t := TakenOver{At: now, toCome: sets.New[int64]()}
	if status == nil {
		return t
	}
	note := func(at *metav1.Time) {
		if at != nil && at.After(now) {
			t.toCome.Insert(at.Unix())
		}
	}
	note(&status.TransitionTime)
	if limit := status.AttemptStatus.RuntimeLimit; limit != nil {
		note(&limit.Since)
	}
	if group := status.AttemptStatus.PodGroup; group != nil {
		note(group.CreationTime)
		note(group.UnknownSince)
	}
	for _, role := range status.AttemptStatus.TaskRoleStatuses {
		for _, task := range role.TaskStatuses {
			note(&task.TransitionTime)
			note(task.AttemptStatus.PreparingSince)
		}
	}
	return t
}

// AnyToCome reports whether the status had times that were still to come.
func (t *TakenOver) AnyToCome() bool { return t.toCome.Len() > 0 }

// since returns a persisted time by this controller's clock. If the time is in the future, the result is when this
// controller found it.
func (t *TakenOver) since(at metav1.Time) time.Time {
	if t.toCome.Has(at.Unix()) {
		return t.At
	}
	return at.Time
}

// over reports whether the span after a time in the status is over. If not, `at` is when it will be, and the caller
// schedules a decision for then.
func (d *decision) over(since metav1.Time, span time.Duration) (over bool, at time.Time) {
	if at = d.TakenOver.since(since).Add(span); d.clock.Before(at) {
		return false, at
	}
	return true, time.Time{}
}
