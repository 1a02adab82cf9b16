// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Lockstep on a real control plane with simulated nodes.
// Where there is an alternative it is measured in the same run, in turn with
// Lockstep, and the figure is their ratio: no absolute time of one machine says
// anything about another. Figures that have a bar are held to it; the exit code
// is 1 if one misses.
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
	"github.com/lockstep-k8s/lockstep/hack/bench/scheduling"
)

func main() {
	var options harness.Options
	flag.StringVar(&options.Cases, "cases", ".", "regular expression of the cases to measure")
	flag.IntVar(&options.Rounds, "rounds", 5, "how often to measure what is compared, at least 1; medians count")
	flag.StringVar(&options.Out, "out", "dist/bench", "folder of results.json, report.md and pictures; results of other cases are kept there")
	list := flag.Bool("list", false, "list the cases and exit")
	flag.Parse()

	cases := slices.Concat(lifecycle.Cases(), scheduling.Cases())
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
