// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

func TestWaitsOfOthersAreComparedWithThoseWithoutLies(t *testing.T) {
	jobs := []workload.Job{{Owner: "over"}, {Owner: "under"}, {Owner: "a", Submit: time.Minute}, {Owner: "b"}}
	starting := func(minutes ...int) (outcome workload.Outcome) {
		for job, at := range minutes {
			outcome.Runs = append(outcome.Runs, workload.Run{Job: job, Start: time.Duration(at) * time.Minute})
		}
		return outcome
	}
	liars := workload.Liars{Overstates: "over", Understates: "under"}
	want := &Liars{Overstates: "over", Understates: "under", Jobs: 2, P99: 360, Without: 240, Ratio: 1.5}
	if diff := cmp.Diff(want, LiarsOf(starting(90, 90, 7, 5), starting(60, 0, 3, 4), jobs, liars)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := LiarsOf(starting(90, 90, 1, 0), starting(0, 0, 1, 0), jobs, liars); got.Ratio != 1 {
		t.Errorf("nobody else waits, and the ratio is %g", got.Ratio)
	}
	if got := LiarsOf(starting(0, 0, 1), starting(0, 0, 1, 1), jobs, liars); !math.IsInf(float64(got.Ratio), 1) {
		t.Errorf("a job never starts beside liars, and the ratio is %g", got.Ratio)
	}
	of := func(p99, without, ratio Wait) Figures {
		return Figures{Liars: &Liars{Jobs: 2, P99: p99, Without: without, Ratio: ratio}}
	}
	median := Median([]Figures{of(10, 20, 0.5), of(30, 10, 3), of(20, 18, 1.1)}).Liars
	if diff := cmp.Diff(&Liars{Jobs: 2, P99: 20, Without: 18, Ratio: 1.1}, median); diff != "" {
		t.Errorf("medians (-want +got):\n%s", diff)
	}
}
