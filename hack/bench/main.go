// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Lockstep against the least that the same work costs on
// the same cluster in the same run: Pods that a bare client creates, scheduled
// one by one. It prints medians and their ratio, for no absolute figure of one
// machine says anything about another.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-k8s/lockstep/e2e/framework"
)

// measured is one way to get Pods running.
type measured struct {
	name string
	run  func(ctx context.Context, b *bench, namespace string) error
}

// comparison is Lockstep against its alternative.
type comparison struct {
	name              string
	pods              int
	baseline, subject measured
}

func main() {
	nodes := flag.Int("nodes", 1000, "how many nodes to simulate")
	rounds := flag.Int("rounds", 3, "how often to measure each; medians are printed")
	only := flag.String("only", "", "measure only comparisons whose name contains this")
	flag.Parse()
	if err := run(context.Background(), *nodes, *rounds, *only); err != nil {
		fmt.Fprintf(os.Stderr, "bench: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, nodes, rounds int, only string) (err error) {
	cluster, err := framework.Up(ctx, framework.Options{SimulatedNodes: nodes, NodeCPU: "32", With: "controller,scheduler"})
	if err != nil {
		return err
	}
	defer func() {
		if downErr := cluster.Down(ctx); err == nil {
			err = downErr
		}
	}()
	b := &bench{cluster: cluster}

	fmt.Printf("%-28s %10s %10s %8s   from first create to all running, medians of %d\n", "", "bare Pods", "Lockstep", "ratio", rounds)
	for _, c := range comparisons() {
		if !strings.Contains(c.name, only) {
			continue
		}
		var baseline, subject []time.Duration
		// In turn, so that what drifts on the machine drifts for both.
		for range rounds {
			d, err := b.measure(ctx, c.baseline, c.pods)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, c.baseline.name, err)
			}
			baseline = append(baseline, d)
			if d, err = b.measure(ctx, c.subject, c.pods); err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, c.subject.name, err)
			}
			subject = append(subject, d)
		}
		was, is := median(baseline), median(subject)
		fmt.Printf("%-28s %9.2fs %9.2fs %8.2f\n", c.name, was.Seconds(), is.Seconds(), is.Seconds()/was.Seconds())
	}
	return nil
}

func comparisons() []comparison {
	return []comparison{
		{
			name: "1 Framework of 1000 tasks", pods: 1000,
			baseline: measured{"bare Pods", barePods(1000)},
			subject:  measured{"Framework", frameworks(1, 1000)},
		},
		{
			name: "200 Frameworks of 4 tasks", pods: 800,
			baseline: measured{"bare Pods", barePods(800)},
			subject:  measured{"Frameworks", frameworks(200, 4)},
		},
		{
			name: "1 PodGroup of 1000 Pods", pods: 1000,
			baseline: measured{"bare Pods", barePods(1000)},
			subject:  measured{"PodGroup", podGroups(1, 1000)},
		},
		{
			name: "100 PodGroups of 8 Pods", pods: 800,
			baseline: measured{"bare Pods", barePods(800)},
			subject:  measured{"PodGroups", podGroups(100, 8)},
		},
	}
}

func median(durations []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[len(sorted)/2]
}
