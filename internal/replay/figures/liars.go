// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Liars compares the waits of honest owners' jobs in two plays: beside two owners who state wrong run times, and beside
// the same two owners when they are honest, too. The medians over variants name the two owners of the first variant.
type Liars struct {
	Overstates  string `json:"overstates"`
	Understates string `json:"understates"`
	// Jobs is the number of the honest owners' jobs.
	Jobs int `json:"jobs"`
	// P99 is the wait of these jobs beside the liars, and Without the wait without lies.
	P99     Wait `json:"p99"`
	Without Wait `json:"p99Without"`
	// Ratio is P99 divided by Without: the factor by which the lies lengthen the waits of others.
	Ratio Wait `json:"ratio"`
}

// LiarsOf returns the figures of two plays of the same jobs: beside liars and without lies.
func LiarsOf(beside, without workload.Outcome, jobs []workload.Job, liars workload.Liars) *Liars {
	p99 := func(outcome workload.Outcome) (Wait, int) {
		starts := startsIn(outcome, jobs)
		var waits []float64
		for i, job := range jobs {
			if job.Owner != liars.Overstates && job.Owner != liars.Understates {
				waits = append(waits, waitOf(&jobs[i], starts[i]))
			}
		}
		slices.Sort(waits)
		return Wait(quantile(waits, 0.99)), len(waits)
	}
	l := &Liars{Overstates: liars.Overstates, Understates: liars.Understates, Ratio: 1}
	l.P99, l.Jobs = p99(beside)
	if l.Without, _ = p99(without); l.P99 != l.Without { // Both may be 0, or infinite.
		l.Ratio = l.P99 / l.Without
	}
	return l
}

// startsIn returns when the jobs of an outcome first started, a negative time for never.
func startsIn(outcome workload.Outcome, jobs []workload.Job) []time.Duration {
	starts := slices.Repeat([]time.Duration{-1}, len(jobs))
	for _, run := range outcome.Runs {
		if starts[run.Job] < 0 || run.Start < starts[run.Job] {
			starts[run.Job] = run.Start
		}
	}
	return starts
}

// waitOf returns the wait in seconds of a job that started at a time, infinity if it never started.
func waitOf(job *workload.Job, start time.Duration) float64 {
	if start < 0 {
		return math.Inf(1)
	}
	return (start - job.Submit).Seconds()
}

// medianOfLiars returns the medians over variants, nil if a variant has no liars.
func medianOfLiars(variants []Figures) *Liars {
	of := func(field func(*Liars) Wait) Wait {
		var values []float64
		for _, f := range variants {
			values = append(values, float64(field(f.Liars)))
		}
		return Wait(middle(values))
	}
	if slices.ContainsFunc(variants, func(f Figures) bool { return f.Liars == nil }) {
		return nil
	}
	m := *variants[0].Liars
	m.Jobs = int(of(func(l *Liars) Wait { return Wait(l.Jobs) }))
	m.P99 = of(func(l *Liars) Wait { return l.P99 })
	m.Without = of(func(l *Liars) Wait { return l.Without })
	m.Ratio = of(func(l *Liars) Wait { return l.Ratio })
	return &m
}
