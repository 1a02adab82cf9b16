// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay measures how long jobs wait under Lockstep's scheduler, beside models of other policies that get the
// same jobs. lockstep-replay plays the workloads in virtual time, so the figures do not depend on the machine.
package replay

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/internal/replay/figures"
)

// limit bounds a case. A round of a trace with tens of thousands of jobs may take an hour.
const limit = 24 * time.Hour

// Cases returns the measurements of generated workloads. If traces is not empty, it is the folder of the public traces
// helios.csv and philly.csv, and Cases also returns the measurements of these.
func Cases(traces string) []harness.Case {
	cases := []harness.Case{
		{Name: "replay/capability", Title: "a machine of 256 nodes, 15,000 jobs up to all of it, load 0.82", Limit: limit, Run: capability},
		{Name: "replay/starts-training", Title: "expected starts on 16 nodes of 8 GPUs, limits that are the run times", Limit: limit,
			Run: expectedStarts(harness.AtMost(25), "--generate=training", "--nodes=16x8", "--jobs=400", "--load=1.0", "--overstate=1")},
		// What a start depends on is not known here, so its error has no bar: docs/adr/0075.
		{Name: "replay/starts-training-overstated", Title: "the same, limits overstated up to fourfold", Limit: limit,
			Run: expectedStarts(nil, "--generate=training", "--nodes=16x8", "--jobs=400", "--load=1.0", "--overstate=4")},
		{Name: "replay/starts-capability", Title: "expected starts on a machine of 128 nodes, limits used to 35 %", Limit: limit,
			Run: expectedStarts(nil, "--generate=capability", "--nodes=128x1", "--jobs=200", "--load=0.82")},
	}
	if traces == "" {
		return cases
	}
	helios := []string{"--trace=" + filepath.Join(traces, "helios.csv"), "--nodes=84x8", "--sizes=1,8,16",
		"--columns=interval=interval,runtime=run_time,units=gpu_num,owner=user"}
	return append(cases,
		harness.Case{Name: "replay/helios", Title: "a GPU cluster of Helios, 84 nodes of 8 GPUs, limits overstated up to tenfold", Limit: limit,
			Run: gangsOfATrace(helios)},
		harness.Case{Name: "replay/helios-liars", Title: "the same with true limits, but of two owners who lie tenfold", Limit: limit,
			Run: liars(helios)},
		harness.Case{Name: "replay/philly", Title: "Philly as one pool of nodes of 8 GPUs, load 0.9, limits overstated up to tenfold", Limit: limit,
			Run: onePool(filepath.Join(traces, "philly.csv"))},
	)
}

// capability compares the longest wait of the jobs that need more than half of a machine. Each round has another seed.
func capability(ctx context.Context, b *harness.Bench) error {
	var toEasy, toGreedy []float64
	for seed := range b.Rounds {
		played, err := play(ctx, b, "--generate=capability", "--nodes=256x1", "--jobs=15000", "--load=0.82", "--sizes=128",
			"--policies=lockstep,easy,greedy", seedFlag(seed))
		if err != nil {
			return err
		}
		longest, err := played.waits("> 128", func(c figures.Class) figures.Wait { return c.Max })
		if err != nil {
			return err
		}
		b.Logf("seed %d: the longest waits in hours are %s", seed+1, longest.inHours())
		toEasy, toGreedy = append(toEasy, longest.ratio("lockstep", "easy")), append(toGreedy, longest.ratio("lockstep", "greedy"))
	}
	const what = "longest wait of jobs over half of the machine, against "
	note := fmt.Sprintf("median of %d seeds", b.Rounds)
	b.Report(harness.Figure{What: what + "easy", Value: harness.Median(toEasy), Unit: "×", Bar: harness.AtMost(1.2), Note: note})
	b.Report(harness.Figure{What: what + "greedy", Value: harness.Median(toGreedy), Unit: "×", Bar: harness.AtMost(0.15), Note: note})
	return nil
}

// gangsOfATrace compares the waits of gangs of more than 16 GPUs.
func gangsOfATrace(trace []string) func(context.Context, *harness.Bench) error {
	return func(ctx context.Context, b *harness.Bench) error {
		played, err := play(ctx, b, append(trace, "--overstate=10", "--policies=lockstep,lockstep-blind,greedy,easy-true", variantsFlag(b))...)
		if err != nil {
			return err
		}
		p99, err := played.waits("> 16", func(c figures.Class) figures.Wait { return c.P99 })
		if err != nil {
			return err
		}
		const what = "p99 wait of gangs of more than 16 GPUs, "
		note := "p99 in hours: " + p99.inHours()
		b.Report(harness.Figure{What: what + "against easy-true", Value: p99.ratio("lockstep", "easy-true"), Unit: "×", Bar: harness.AtMost(1.2), Note: note})
		b.Report(harness.Figure{What: what + "against greedy", Value: p99.ratio("lockstep", "greedy"), Unit: "×", Bar: harness.AtMost(0.6), Note: note})
		b.Report(harness.Figure{What: what + "without estimates, against greedy", Value: p99.ratio("lockstep-blind", "greedy"), Unit: "×",
			Bar: harness.AtMost(1), Note: note})
		for _, policy := range []string{"lockstep", "lockstep-blind"} {
			b.Report(behind(played, policy, "greedy"))
		}
		return nil
	}
}

// liars compares the waits of honest owners beside two owners who lie with the waits without lies.
func liars(trace []string) func(context.Context, *harness.Bench) error {
	return func(ctx context.Context, b *harness.Bench) error {
		played, err := play(ctx, b, append(trace, "--overstate=1", "--liars=10", "--policies=lockstep", variantsFlag(b))...)
		if err != nil {
			return err
		}
		of := played["lockstep"].Liars
		b.Report(harness.Figure{What: "p99 wait of the others, against the same without lies", Value: float64(of.Ratio), Unit: "×", Bar: harness.AtMost(1.1),
			Note: fmt.Sprintf("%.2f h against %.2f h, %d jobs", of.P99/3600, of.Without/3600, of.Jobs)})
		return nil
	}
}

// onePool compares the occupancy of a pool, and the waits of its smallest jobs.
func onePool(trace string) func(context.Context, *harness.Bench) error {
	return func(ctx context.Context, b *harness.Bench) error {
		const columns = "submit=timestamp,runtime=duration,units=num_gpus,owner=cluster"
		nodes, err := nodesFor(trace, columns, 8, 0.9)
		if err != nil {
			return err
		}
		played, err := play(ctx, b, "--trace="+trace, "--columns="+columns, fmt.Sprintf("--nodes=%dx8", nodes), "--sizes=1,8,16", "--overstate=10",
			"--policies=lockstep,fifo,greedy,easy,easy-true", variantsFlag(b))
		if err != nil {
			return err
		}
		best := "greedy"
		for name, f := range played {
			// easy-true knows what nobody knows, and is only shown beside the others.
			if name != "lockstep" && name != "easy-true" && f.SOR > played[best].SOR {
				best = name
			}
		}
		b.Report(behind(played, "lockstep", best))
		p99, err := played.waits("1", func(c figures.Class) figures.Wait { return c.P99 })
		if err != nil {
			return err
		}
		b.Report(harness.Figure{What: "p99 wait of jobs of one GPU, against greedy", Value: p99.ratio("lockstep", "greedy"), Unit: "×",
			Bar: harness.AtMost(1.3), Note: "p99 in hours: " + p99.inHours()})
		return nil
	}
}

// behind returns by how many points of SOR a policy is behind another.
func behind(played figuresByPolicy, policy, other string) harness.Figure {
	is, best := played[policy].SOR, played[other].SOR
	return harness.Figure{What: "SOR, points of " + policy + " behind " + other, Value: 100 * (best - is), Bar: harness.AtMost(0.5),
		Note: fmt.Sprintf("%.3f against %.3f", is, best)}
}

// expectedStarts holds expected starts against the true ones. Each round has another seed. mostError is the bar for the error of the first
// probable start, in percent of the wait; nil for none.
func expectedStarts(mostError *harness.Bar, workload ...string) func(context.Context, *harness.Bench) error {
	return func(ctx context.Context, b *harness.Bench) error {
		var waited, told, kept, errors []float64
		for seed := range b.Rounds {
			played, err := play(ctx, b, append(workload, "--expected-starts", "--policies=lockstep", seedFlag(seed))...)
			if err != nil {
				return err
			}
			starts := played["lockstep"].Starts
			if starts == nil {
				return fmt.Errorf("seed %d: no job had an expected start", seed+1)
			}
			waited, told = append(waited, float64(starts.Waited)), append(told, 100*starts.Told)
			kept, errors = append(kept, 100*starts.Kept), append(errors, 100*starts.Error)
		}
		note := fmt.Sprintf("medians of %d seeds, %.0f jobs that waited", b.Rounds, harness.Median(waited))
		b.Report(harness.Figure{What: "jobs that were told a start", Value: harness.Median(told), Unit: "%", Bar: harness.AtLeast(90), Note: note})
		b.Report(harness.Figure{What: "latest starts that were kept, of jobs that were not overtaken", Value: harness.Median(kept), Unit: "%",
			Bar: harness.AtLeast(99), Note: note})
		b.Report(harness.Figure{What: "error of the first probable start, as a part of the wait", Value: harness.Median(errors), Unit: "%",
			Bar: mostError, Note: note})
		return nil
	}
}

// seedFlag returns the flag for the seed of a round.
func seedFlag(round int) string { return "--seed=" + strconv.Itoa(round+1) }

// variantsFlag returns the flag that has lockstep-replay play a variant of a trace for each round. If there is only one
// round, the trace is played as it is.
func variantsFlag(b *harness.Bench) string {
	if b.Rounds == 1 {
		return "--variants=0"
	}
	return "--variants=" + strconv.Itoa(b.Rounds)
}
