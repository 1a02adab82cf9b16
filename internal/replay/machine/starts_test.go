// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// TestJobsStartByTheLatestStartThatTheyWereTold: limits are enforced and overstated, so work that backfills ends in time.
func TestJobsStartByTheLatestStartThatTheyWereTold(t *testing.T) {
	nodes := workload.Uniform(6, 8)
	jobs, _ := workload.Prepare(workload.Estimates(workload.Training(80, nodes, 1.2, 7), 4, 7), nodes)
	outcome, err := Play(t, jobs, nodes, Options{Name: "lockstep", Enforced: true, Args: DefaultArgs(true)})
	if err != nil {
		t.Fatal(err)
	}
	starts := figures.Of(outcome, jobs, nodes, figures.DefaultBounds(nodes)).Starts
	if starts == nil || starts.Waited < 5 || starts.Told < 0.9 || starts.Undisturbed == 0 || starts.Kept < 1 {
		t.Errorf("%+v: want nine of ten jobs that wait to be told a start, and all that nobody overtakes to start by their latest one", starts)
	}
}
