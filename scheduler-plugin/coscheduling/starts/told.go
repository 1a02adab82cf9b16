// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// pause is how long a group keeps what it was told.
const pause = time.Minute

// told is what a group was told, and when.
type told struct {
	whatif.Expected
	at time.Time
}

// isNews reports whether a group that waits since a time is to be told what is expected now.
func (t *told) isNews(now *whatif.Expected, since, at time.Time) bool {
	return at.Sub(t.at) >= pause && (differs(t.Latest, now.Latest, since) || differs(t.Probable, now.Probable, since))
}

// differs reports whether a time has changed by more than a tenth of the wait.
func differs(before, after, since time.Time) bool {
	if before.IsZero() || after.IsZero() {
		return !before.Equal(after)
	}
	return after.Sub(before).Abs() > after.Sub(since)/10
}

// toldBy returns what a group was told by its status.
func toldBy(start *schedulingv1alpha1.ExpectedStart) told {
	if start == nil {
		return told{}
	}
	return told{Expected: whatif.Expected{Latest: start.Latest.Time, Probable: start.Probable.Time}}
}
