// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"testing"

	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

// runningScheduler is the scheduler of all tests of a package, and how to start it again.
type runningScheduler struct {
	*localenv.Process
	start func() (*localenv.Process, error)
}

// RunScheduler starts lockstep-scheduler for all tests of a package, on a cluster that runs
// none. args are those of StartScheduler.
func (c *Cluster) RunScheduler(ctx context.Context, args string) error {
	_, err := c.RunSchedulerWith(ctx, localenv.SchedulerOptions{Args: args})
	return err
}

// RunSchedulerWith starts lockstep-scheduler as RunScheduler does, with options, and returns its process.
func (c *Cluster) RunSchedulerWith(ctx context.Context, o localenv.SchedulerOptions) (*localenv.Process, error) {
	start := func() (*localenv.Process, error) { return c.StartSchedulerWith(ctx, o) }
	process, err := start()
	if err != nil {
		return nil, err
	}
	c.scheduler = &runningScheduler{process, start}
	return process, nil
}

// StopScheduler ends the scheduler that RunScheduler has started. When the test ends, it is
// started again. No other test may run meanwhile.
func (c *Cluster) StopScheduler(t testing.TB) {
	t.Helper()
	c.scheduler.Kill()
	t.Cleanup(func() {
		var err error
		if c.scheduler.Process, err = c.scheduler.start(); err != nil {
			t.Fatal(err)
		}
	})
}

// SchedulerFor starts lockstep-scheduler for one test, on a cluster that runs none, and returns at once. When the test ends, the
// scheduler is killed; if the test failed, the end of the scheduler's log is printed.
func (c *Cluster) SchedulerFor(t testing.TB, o localenv.SchedulerOptions) *localenv.Process {
	t.Helper()
	// Not the context of the test: the cleanup of the test may need the scheduler.
	scheduler, err := c.StartSchedulerWith(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		scheduler.Kill()
		if t.Failed() {
			t.Logf("log of the scheduler:\n%s", scheduler.LogTail(8000))
		}
	})
	return scheduler
}
