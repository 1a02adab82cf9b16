// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling/objects"
)

// times are measurements of one thing, in seconds.
type times []float64

func (t times) median() float64 { return harness.Median(t) }

// ratio is a figure for how the medians of two things compare.
func ratio(what string, subject, baseline times, than string, bar *harness.Bar) harness.Figure {
	return harness.Figure{
		What: what, Value: subject.median() / baseline.median(), Unit: "×", Bar: bar,
		Note: fmt.Sprintf("%.3f s against %.3f s of %s, medians of %d", subject.median(), baseline.median(), than, len(subject)),
	}
}

// seconds is a figure that is only told.
func seconds(what string, t times) harness.Figure {
	return harness.Figure{What: what, Value: t.median(), Unit: "s"}
}

// bounded is a figure of seconds that has a bar.
func bounded(what string, t times, most float64) harness.Figure {
	figure := seconds(what, t)
	figure.Bar = harness.AtMost(most)
	return figure
}

// gangOf1000 holds one large gang against the same Pods in kube-scheduler, and
// the time in which its bindings are written against writing them alone.
func gangOf1000(ctx context.Context, s *stage) error {
	const size = 1000
	var plainTook, gangTook, gangSpan, alone times
	// In turn, so that what drifts on the machine drifts for all.
	var curves []harness.Series // of the last round
	for range s.Rounds {
		took, plainBindings, err := s.schedule(ctx, plain, pods(size, plain), size)
		if err != nil {
			return err
		}
		plainTook = append(plainTook, took.Seconds())
		plainStart := plainBindings.last().Add(-took)
		took, gangBindings, err := s.schedule(ctx, lockstep, gang(size), size)
		if err != nil {
			return err
		}
		gangTook, gangSpan = append(gangTook, took.Seconds()), append(gangSpan, gangBindings.span().Seconds())
		written, err := s.write(ctx, pods(size, plain), manyNodes)
		if err != nil {
			return err
		}
		alone = append(alone, written.span().Seconds())
		curves = []harness.Series{
			curve("kube-scheduler", plainBindings, plainStart),
			curve("Lockstep", gangBindings, gangBindings.last().Add(-took)),
			curve("bindings alone", written, written.at[0]),
		}
	}
	s.Draw(harness.Chart{File: "scheduling-gang-of-1000.svg", Title: "One gang of 1000 on 5000 nodes, from the start of the scheduler",
		X: "seconds", Y: "bound", Linear: true, Series: curves})
	s.Report(ratio("start to last binding", gangTook, plainTook, "kube-scheduler", harness.AtMost(0.5)))
	s.Report(ratio("first to last binding", gangSpan, alone, "writing the bindings alone", harness.AtMost(1.2)))
	return nil
}

// curve is how many Pods were bound when, in seconds since start: a point for each
// hundredth of them.
func curve(name string, b *bindings, start time.Time) harness.Series {
	series := harness.Series{Name: name}
	for i, at := range b.at {
		if i%max(1, len(b.at)/100) == 0 || i == len(b.at)-1 {
			series.Points = append(series.Points, harness.Point{X: at.Sub(start).Seconds(), Y: float64(i + 1)})
		}
	}
	return series
}

// manyGangs holds many small gangs against the same Pods in kube-scheduler.
func manyGangs(ctx context.Context, s *stage) error {
	const gangs, size = 500, 8
	work := objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: "1"}
	var plainTook, gangTook, written times
	for range s.Rounds {
		took, _, err := s.schedule(ctx, plain, pods(gangs*size, plain), gangs*size)
		if err != nil {
			return err
		}
		plainTook = append(plainTook, took.Seconds())
		if took, _, err = s.schedule(ctx, lockstep, work, gangs*size); err != nil {
			return err
		}
		gangTook = append(gangTook, took.Seconds())
		b, err := s.write(ctx, pods(gangs*size, plain), fewNodes)
		if err != nil {
			return err
		}
		written = append(written, b.span().Seconds())
	}
	s.Report(ratio("start to last binding", gangTook, plainTook, "kube-scheduler", harness.AtMost(0.6)))
	s.Report(seconds("writing the bindings alone", written))
	return nil
}

// contention has twice as many gangs as have room, and looks that half of them
// get it whole.
func contention(ctx context.Context, s *stage) error {
	const gangs, size, room = 20, 100, fewNodes
	contended := objects.Work{Scheduler: lockstep.schedulerName, Gangs: gangs, Size: size, CPU: objects.NodeCPU}
	fitting := objects.Work{Scheduler: plain.schedulerName, Size: room, CPU: objects.NodeCPU}
	var plainTook, gangTook times
	whole, partial := room/size, 0
	for range s.Rounds {
		took, _, err := s.schedule(ctx, plain, fitting, room)
		if err != nil {
			return err
		}
		plainTook = append(plainTook, took.Seconds())
		took, b, err := s.schedule(ctx, lockstep, contended, room)
		if err != nil {
			return err
		}
		gangTook = append(gangTook, took.Seconds())
		roundWhole := 0
		for _, members := range b.byGang {
			if members == size {
				roundWhole++
			} else {
				partial++
			}
		}
		whole = min(whole, roundWhole)
	}
	s.Report(harness.Figure{What: "gangs that are whole", Value: float64(whole), Bar: harness.Exactly(room / size), Note: "the fewest of all rounds"})
	s.Report(harness.Figure{What: "gangs that are partial", Value: float64(partial), Bar: harness.Exactly(0), Note: "in all rounds together"})
	s.Report(ratio("start to last binding", gangTook, plainTook, "kube-scheduler for 1000 Pods that fit", harness.AtMost(1)))
	return nil
}

// rack holds a gang that must stay in a rack against one that may go anywhere,
// both in all and in what deciding takes of that.
func rack(ctx context.Context, s *stage) error {
	const size = 256
	free := gang(size)
	bound := free
	bound.Rack = schedulingv1alpha1.TopologyRequired
	var freeTook, boundTook, freeAlone, boundAlone times
	for range s.Rounds {
		for _, contender := range []struct {
			work        objects.Work
			took, alone *times
		}{{free, &freeTook, &freeAlone}, {bound, &boundTook, &boundAlone}} {
			took, _, err := s.schedule(ctx, lockstep, contender.work, size)
			if err != nil {
				return err
			}
			*contender.took = append(*contender.took, took.Seconds())
			decided, err := s.decide(ctx, contender.work)
			if err != nil {
				return err
			}
			*contender.alone = append(*contender.alone, decided)
		}
	}
	s.Report(ratio("start to last binding", boundTook, freeTook, "the same gang without topology", harness.AtMost(1.3)))
	s.Report(ratio("scheduling alone", boundAlone, freeAlone, "the same gang without topology", harness.AtMost(1.3)))
	return nil
}

// ordinary holds Pods without a PodGroup against the same in kube-scheduler: what
// the plugin costs those who don't use it.
func ordinary(ctx context.Context, s *stage) error {
	const n = 1000
	var plainTook, ourTook times
	for range s.Rounds {
		for _, contender := range []struct {
			scheduler scheduler
			took      *times
		}{{plain, &plainTook}, {lockstep, &ourTook}} {
			took, _, err := s.schedule(ctx, contender.scheduler, pods(n, contender.scheduler), n)
			if err != nil {
				return err
			}
			*contender.took = append(*contender.took, took.Seconds())
		}
	}
	s.Report(ratio("start to last binding", ourTook, plainTook, "kube-scheduler", harness.AtMost(1.05)))
	return nil
}

// alone measures deciding without writing.
func alone(ctx context.Context, s *stage) error {
	const size, large = 1000, 4000
	var plainTook, gangTook, largeTook times
	for range s.Rounds {
		for _, contender := range []struct {
			work objects.Work
			took *times
		}{{pods(size, plain), &plainTook}, {gang(size), &gangTook}, {gang(large), &largeTook}} {
			took, err := s.decide(ctx, contender.work)
			if err != nil {
				return err
			}
			*contender.took = append(*contender.took, took)
		}
	}
	s.Report(ratio("a gang of 1000", gangTook, plainTook, "kube-scheduler", harness.AtMost(0.15)))
	s.Report(ratio("a gang of 4000", largeTook, gangTook, "the gang of 1000", harness.AtMost(4.5)))
	return nil
}

// decide measures, in seconds, how long it takes to decide where w goes, in a
// process of its own, and clears the stage again.
func (s *stage) decide(ctx context.Context, w objects.Work) (float64, error) {
	if err := s.createGroups(ctx, w); err != nil {
		return 0, err
	}
	if err := s.createPods(ctx, w); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "scheduling-alone", "-kubeconfig", s.cluster.Kubeconfig, "-scheduler-name", w.Scheduler,
		"-pods", strconv.Itoa(w.Total()), "-gangs="+strconv.FormatBool(w.Gangs > 0))
	took, err := measured(cmd)
	if err != nil {
		return 0, err
	}
	s.Logf("%d Pods of %s decided on in %.3f s", w.Total(), w.Scheduler, took.Seconds)
	return took.Seconds, s.clear(ctx)
}
