// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package starts

import (
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// pause is how long a written expected start stays at least.
const pause = time.Minute

// reported is the expected start that was last written to a group, and when.
type reported struct {
	whatif.Expected
	at time.Time
}

// isNews reports whether the expected start differs enough from the one that was last written. `since` is when the
// group began to wait.
func (t *reported) isNews(now *whatif.Expected, since, at time.Time) bool {
	return at.Sub(t.at) >= pause && (differs(t.Latest, now.Latest, since) || differs(t.Probable, now.Probable, since))
}

// differs reports whether a time has changed by more than a tenth of the wait that began at `since`.
func differs(before, after, since time.Time) bool {
	if before.IsZero() || after.IsZero() {
		return !before.Equal(after)
	}
	return after.Sub(before).Abs() > after.Sub(since)/10
}

// reportedBy returns the expected start in a group's status.
func reportedBy(start *schedulingv1alpha1.ExpectedStart) reported {
	if start == nil {
		return reported{}
	}
	return reported{Expected: whatif.Expected{Latest: start.Latest.Time, Probable: start.Probable.Time}}
}
