// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"math"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Starts is the accuracy of the expected starts. Parts are from 0 to 1; times are in seconds.
type Starts struct {
	// Waited is how many jobs waited for at least two minutes. Told is the part of these that had an expected start.
	Waited int     `json:"waited"`
	Told   float64 `json:"told"`
	// Undisturbed is how many jobs had a latest start and were not overtaken afterwards by a job that was created
	// later. Kept is the part of these that started by their first latest start. Slack is the median of how much
	// earlier they started.
	Undisturbed int     `json:"undisturbed"`
	Kept        float64 `json:"latestKept"`
	Slack       float64 `json:"latestSlackSeconds"`
	// Error is the median error of the first probable start, as a part of the job's wait. ErrorLater is the same for
	// the probable start at half of the wait.
	Error      float64 `json:"probableError"`
	ErrorLater float64 `json:"probableErrorHalfway"`
}

// leastWait is the minimum wait of the jobs for which expected starts are evaluated.
const leastWait = 2 * time.Minute

// startsOf returns how accurate the expected starts were. starts are the true starts of the jobs; a negative time means
// never. startsOf returns nil if no job had an expected start.
func startsOf(told []workload.Told, jobs []workload.Job, starts []time.Duration) *Starts {
	if len(told) == 0 {
		return nil
	}
	byJob := make(map[int][]workload.Told)
	for _, t := range told {
		if t.At < starts[t.Job] { // later ones are about another run of a job that was preempted
			byJob[t.Job] = append(byJob[t.Job], t)
		}
	}
	s := &Starts{}
	var slack, first, later []float64
	toldAny, kept := 0, 0
	for job, start := range starts {
		wait := start - jobs[job].Submit
		if start < 0 || wait < leastWait {
			continue
		}
		s.Waited++
		all := byJob[job]
		if len(all) == 0 {
			continue
		}
		toldAny++
		at := all[0]
		if at.Latest >= 0 && !isOvertaken(job, at.At, jobs, starts) {
			s.Undisturbed++
			slack = append(slack, (at.Latest - start).Seconds())
			// Expected starts are in whole seconds.
			if start <= at.Latest+time.Second {
				kept++
			}
		}
		halfway := at
		for _, t := range all {
			if t.At <= jobs[job].Submit+wait/2 {
				halfway = t
			}
		}
		errorOf := func(t workload.Told) float64 {
			if t.Probable < 0 {
				return math.Inf(1)
			}
			return (t.Probable - start).Abs().Seconds() / wait.Seconds()
		}
		first, later = append(first, errorOf(at)), append(later, errorOf(halfway))
	}
	s.Told, s.Kept = ratio(float64(toldAny), float64(s.Waited)), ratio(float64(kept), float64(s.Undisturbed))
	for _, m := range []struct {
		of     *float64
		values []float64
	}{{&s.Slack, slack}, {&s.Error, first}, {&s.ErrorLater, later}} {
		if len(m.values) > 0 {
			*m.of = middle(m.values)
		}
	}
	return s
}

// isOvertaken reports whether another job, created after a time, started before this job.
func isOvertaken(job int, after time.Duration, jobs []workload.Job, starts []time.Duration) bool {
	for other := len(jobs) - 1; other >= 0 && jobs[other].Submit > after; other-- {
		if starts[other] >= 0 && starts[other] < starts[job] {
			return true
		}
	}
	return false
}

// medianOfStarts returns the medians over variants, nil if a variant lacks any.
func medianOfStarts(variants []Figures) *Starts {
	of := func(field func(*Starts) float64) float64 {
		var values []float64
		for _, f := range variants {
			values = append(values, field(f.Starts))
		}
		return middle(values)
	}
	for _, f := range variants {
		if f.Starts == nil {
			return nil
		}
	}
	return &Starts{
		Waited:      int(of(func(s *Starts) float64 { return float64(s.Waited) })),
		Told:        of(func(s *Starts) float64 { return s.Told }),
		Undisturbed: int(of(func(s *Starts) float64 { return float64(s.Undisturbed) })),
		Kept:        of(func(s *Starts) float64 { return s.Kept }),
		Slack:       of(func(s *Starts) float64 { return s.Slack }),
		Error:       of(func(s *Starts) float64 { return s.Error }),
		ErrorLater:  of(func(s *Starts) float64 { return s.ErrorLater }),
	}
}
