// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

func TestStartsAreHeldAgainstWhatJobsWereTold(t *testing.T) {
	const h = time.Hour
	jobs := make([]workload.Job, 6)
	jobs[5].Submit = 3 * h
	told := []workload.Told{
		{Job: 1, At: h, Latest: 5 * h, Probable: 3 * h}, {Job: 1, At: h + h/2, Latest: 5 * h, Probable: 4 * h}, {Job: 1, At: 3 * h, Latest: 4 * h, Probable: 4 * h},
		{Job: 2, At: h, Latest: 3 * h, Probable: -1},
		{Job: 3, At: h, Latest: 3 * h, Probable: 8 * h},
	}
	// Job 0 does not wait, 1 and 2 start before the job that is created at 3 h, 3 after it. Nobody told job 4 of its start.
	starts := []time.Duration{0, 4 * h, 4 * h, 10 * h, h, 5 * h}
	want := &Starts{Waited: 5, Told: 0.6, Undisturbed: 2, Kept: 0.5, Slack: -h.Seconds(), Error: 0.25, ErrorLater: 0.2}
	if diff := cmp.Diff(want, startsOf(told, jobs, starts)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
