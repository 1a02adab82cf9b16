// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Lockstep: on a real control plane with simulated nodes, and by replays of workloads. If there
// is an alternative, it is measured in the same run, in turn with Lockstep, and the figure is their ratio, because an
// absolute time of one machine says nothing about another. A figure may have a bar. The exit code is 1 if a figure
// misses its bar.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
	"github.com/lockstep-k8s/lockstep/hack/bench/lifecycle"
	"github.com/lockstep-k8s/lockstep/hack/bench/replay"
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling"
)

func main() {
	var options harness.Options
	flag.StringVar(&options.Cases, "cases", ".", "regular expression of the cases to measure")
	flag.IntVar(&options.Rounds, "rounds", 5, "how often to measure what is compared, at least 1; medians count")
	flag.StringVar(&options.Out, "out", "dist/bench", "folder of results.json, report.md and pictures; results of other cases are kept there")
	traces := flag.String("traces", "", "folder of the traces helios.csv and philly.csv, for the cases replay/helios, replay/helios-liars and replay/philly; these are left out without it")
	list := flag.Bool("list", false, "list the cases and exit")
	flag.Parse()

	cases := slices.Concat(lifecycle.Cases(), scheduling.Cases(), replay.Cases(*traces))
	if *list {
		for _, c := range cases {
			fmt.Printf("%-28s %s\n", c.Name, c.Title)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := harness.Run(ctx, cases, options); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		stop()
		os.Exit(1)
	}
}
