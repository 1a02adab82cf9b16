// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
)

// compare measures n Frameworks, each of a number of tasks, against bare Pods, from the
// first creation until all run, and holds the ratio to a bar: Frameworks as
// FrameworkController knows them, and then gangs. Bare Pods are those that the
// Frameworks have, and are placed one by one by the same scheduler.
func compare(ctx context.Context, b *harness.Bench, n, tasks int, bar float64) error {
	c, err := up(ctx, b)
	if err != nil {
		return err
	}
	for _, frameworks := range []struct {
		name string
		of   shape
	}{{"plain Frameworks", plain}, {"gangs", gang}} {
		err := duel(ctx, b,
			contender{frameworks.name, func(ctx context.Context) (time.Duration, error) { return c.runFrameworks(ctx, frameworks.of, n, tasks) }},
			contender{"bare Pods", func(ctx context.Context) (time.Duration, error) { return c.runBare(ctx, frameworks.of, n, tasks) }},
			bar)
		if err != nil {
			return err
		}
	}
	return nil
}

// contender is what is measured, or what it is measured against.
type contender struct {
	name string
	run  func(context.Context) (time.Duration, error)
}

// duel measures how long subject takes against baseline, from creation to all running, and
// holds the ratio to a bar.
func duel(ctx context.Context, b *harness.Bench, subject, baseline contender, bar float64) error {
	// The first of all finds cold caches everywhere: it does not count.
	for _, c := range []contender{baseline, subject} {
		if _, err := c.run(ctx); err != nil {
			return fmt.Errorf("running %s for the first time: %w", c.name, err)
		}
	}
	var was, is, ratios []float64
	// In turn, so that what drifts on the machine drifts for both. Each pair has a
	// ratio of its own: the medians of all may come from rounds far apart.
	for range b.Rounds {
		took := [2]time.Duration{}
		for i, c := range []contender{baseline, subject} {
			var err error
			if took[i], err = c.run(ctx); err != nil {
				return fmt.Errorf("running %s: %w", c.name, err)
			}
		}
		b.Logf("%s %.2f s, %s %.2f s", baseline.name, took[0].Seconds(), subject.name, took[1].Seconds())
		was, is = append(was, took[0].Seconds()), append(is, took[1].Seconds())
		ratios = append(ratios, took[1].Seconds()/took[0].Seconds())
	}
	b.Report(harness.Figure{
		What: fmt.Sprintf("%s, creation to all running, against %s", subject.name, baseline.name), Value: harness.Median(ratios), Unit: "×", Bar: harness.AtMost(bar),
		Note: fmt.Sprintf("%.2f s against %.2f s, medians of %d", harness.Median(is), harness.Median(was), b.Rounds),
	})
	return nil
}

// runBare is how long the Pods of n Frameworks take without Frameworks.
func (c *cluster) runBare(ctx context.Context, of shape, n, tasks int) (took time.Duration, err error) {
	err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		took, err = c.timed(ctx,
			func(ctx context.Context) error { return c.createBare(ctx, namespace, of, n, tasks) },
			func(ctx context.Context) error { return c.WaitPodsRunning(ctx, namespace, n*tasks) })
		return err
	})
	return took, err
}

// runFrameworks is how long n Frameworks take.
func (c *cluster) runFrameworks(ctx context.Context, of shape, n, tasks int) (took time.Duration, err error) {
	err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		took, err = c.timed(ctx,
			func(ctx context.Context) error { return c.createFrameworks(ctx, namespace, of, n, tasks) },
			func(ctx context.Context) error { return c.waitRunning(ctx, namespace, n, tasks) })
		return err
	})
	return took, err
}

// timed returns the time from the beginning of create until wait has seen its end, and logs what was written meanwhile.
func (c *cluster) timed(ctx context.Context, create, wait func(context.Context) error) (time.Duration, error) {
	before, err := c.APIServerMetrics(ctx)
	if err != nil {
		return 0, err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	began := time.Now()
	var took time.Duration
	group.Go(func() error { return create(groupCtx) })
	group.Go(func() error {
		err := wait(groupCtx)
		took = time.Since(began)
		return err
	})
	if err := group.Wait(); err != nil {
		return took, err
	}
	after, err := c.APIServerMetrics(ctx)
	if err != nil {
		return took, err
	}
	c.bench.Logf("%s; processor time of the API server %.1f s", after.Writes().Since(before.Writes()), (after.CPU() - before.CPU()).Seconds())
	return took, nil
}
