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

// compare measures n Frameworks of so many tasks against bare Pods, from the
// first creation until all run, and holds the ratio to a bar: Frameworks as
// FrameworkController knows them, and then gangs.
func compare(ctx context.Context, b *harness.Bench, n, tasks int, bar float64) error {
	c, err := up(ctx, b)
	if err != nil {
		return err
	}
	if err := c.compare(ctx, b, "plain Frameworks", plain, n, tasks, bar); err != nil {
		return err
	}
	return c.compare(ctx, b, "gangs", gang, n, tasks, bar)
}

// compare measures Frameworks of one shape. Bare Pods are those that the
// Frameworks have, and are placed one by one by the same scheduler.
func (c *cluster) compare(ctx context.Context, b *harness.Bench, what string, of shape, n, tasks int, bar float64) error {
	// The first of all finds cold caches everywhere: it does not count.
	if _, err := c.runBare(ctx, of, n, tasks); err != nil {
		return err
	}
	if _, err := c.runFrameworks(ctx, of, n, tasks); err != nil {
		return err
	}
	var bare, frameworks, ratios []float64
	// In turn, so that what drifts on the machine drifts for both. Each pair has a
	// ratio of its own: the medians of all may come from rounds far apart.
	for range b.Rounds {
		was, err := c.runBare(ctx, of, n, tasks)
		if err != nil {
			return fmt.Errorf("running bare Pods: %w", err)
		}
		is, err := c.runFrameworks(ctx, of, n, tasks)
		if err != nil {
			return fmt.Errorf("running %s: %w", what, err)
		}
		b.Logf("bare Pods %.2f s, %s %.2f s", was.Seconds(), what, is.Seconds())
		bare, frameworks = append(bare, was.Seconds()), append(frameworks, is.Seconds())
		ratios = append(ratios, is.Seconds()/was.Seconds())
	}
	b.Report(harness.Figure{
		What: what + ", creation to all running, against bare Pods", Value: harness.Median(ratios), Unit: "×", Bar: harness.AtMost(bar),
		Note: fmt.Sprintf("%.2f s against %.2f s, medians of %d", harness.Median(frameworks), harness.Median(bare), b.Rounds),
	})
	return nil
}

// runBare is how long the Pods of n Frameworks take without Frameworks.
func (c *cluster) runBare(ctx context.Context, of shape, n, tasks int) (took time.Duration, err error) {
	err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		took, err = timed(ctx,
			func(ctx context.Context) error { return c.createBare(ctx, namespace, of, n, tasks) },
			func(ctx context.Context) error { return c.WaitPodsRunning(ctx, namespace, n*tasks) })
		return err
	})
	return took, err
}

// runFrameworks is how long n Frameworks take.
func (c *cluster) runFrameworks(ctx context.Context, of shape, n, tasks int) (took time.Duration, err error) {
	err = c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		took, err = timed(ctx,
			func(ctx context.Context) error { return c.createFrameworks(ctx, namespace, of, n, tasks) },
			func(ctx context.Context) error { return c.waitRunning(ctx, namespace, n, tasks) })
		return err
	})
	return took, err
}

// timed is the time from the beginning of create until wait has seen its end.
func timed(ctx context.Context, create, wait func(context.Context) error) (time.Duration, error) {
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	var took time.Duration
	group.Go(func() error { return create(ctx) })
	group.Go(func() error {
		err := wait(ctx)
		took = time.Since(began)
		return err
	})
	return took, group.Wait()
}
