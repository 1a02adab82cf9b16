// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/lockstep-k8s/lockstep/hack/bench/harness"
)

// Names of the controller's metrics.
const (
	metricStatusWrites     = "lockstep_controller_status_writes_total"
	metricStatusWriteBytes = "lockstep_controller_status_write_bytes_total"
	metricStatusWriteTime  = "lockstep_controller_status_write_duration_seconds"
	metricSyncSeconds      = "lockstep_controller_sync_duration_seconds"
	metricActions          = "lockstep_controller_actions_total"
	metricQueueLength      = "lockstep_controller_queue_length"
)

const component = "controller"

// life is what one Framework costs from creation to Completed.
type life struct {
	running, completed time.Duration
	writes             float64
	bytes              float64
	cpu                time.Duration
	// syncP99 and writeMedian are in seconds: what 99 % of the syncs took of a
	// worker, and half of the writes of the status in all.
	syncP99, writeMedian float64
}

// lead leads a Framework with a number of tasks through a whole life. They run for long
// enough that all run at the same time, unless the machine is very slow.
func (c *cluster) lead(ctx context.Context, tasks int) (life, error) {
	var l life
	runFor := 10*time.Second + time.Duration(tasks)*12*time.Millisecond
	err := c.InNamespace(ctx, func(ctx context.Context, namespace string) error {
		before, err := c.Metrics(ctx, component)
		if err != nil {
			return err
		}
		began := time.Now()
		if err := c.create(ctx, namespace, gang("large", tasks, runFor)); err != nil {
			return err
		}
		if err := c.waitStarted(ctx, namespace, tasks); err != nil {
			return err
		}
		l.running = time.Since(began)
		if err := c.waitSucceeded(ctx, namespace, tasks); err != nil {
			return err
		}
		l.completed = time.Since(began)
		after, err := c.Metrics(ctx, component)
		if err != nil {
			return err
		}
		l.writes = after.Sum(metricStatusWrites) - before.Sum(metricStatusWrites)
		l.bytes = after.Sum(metricStatusWriteBytes) - before.Sum(metricStatusWriteBytes)
		l.cpu = after.CPU() - before.CPU()
		l.syncP99 = after.Quantile(before, metricSyncSeconds, 0.99)
		l.writeMedian = after.Quantile(before, metricStatusWriteTime, 0.5)
		return nil
	})
	return l, err
}

func (l life) String() string {
	return fmt.Sprintf("all running after %.1f s, Completed after %.1f s, %.0f writes of the status, %.1f MiB, %.2f s of CPU, 99 %% of syncs within %v",
		l.running.Seconds(), l.completed.Seconds(), l.writes, l.bytes/(1<<20), l.cpu.Seconds(), time.Duration(l.syncP99*float64(time.Second)))
}

// statusWrites counts how often and how much of a status is written.
func statusWrites(ctx context.Context, b *harness.Bench) error {
	c, err := up(ctx, b)
	if err != nil {
		return err
	}
	var writes, bytes, writesOf4000 []float64
	for range b.Rounds {
		small, err := c.lead(ctx, 1000)
		if err != nil {
			return fmt.Errorf("1000 tasks: %w", err)
		}
		b.Logf("1000 tasks: %s", small)
		writes, bytes = append(writes, small.writes), append(bytes, small.bytes)
		large, err := c.lead(ctx, 4000)
		if err != nil {
			return fmt.Errorf("4000 tasks: %w", err)
		}
		b.Logf("4000 tasks: %s", large)
		writesOf4000 = append(writesOf4000, large.writes)
	}
	was, is := harness.Median(writes), harness.Median(writesOf4000)
	b.Report(harness.Figure{What: "of 1000 tasks", Value: was, Unit: "writes", Bar: harness.AtMost(40),
		Note: fmt.Sprintf("median of %v", writes)})
	b.Report(harness.Figure{What: "of 4000 tasks", Value: is, Unit: "writes", Bar: harness.Between(math.Ceil(0.8*was), math.Floor(1.2*was)),
		Note: fmt.Sprintf("median of %v; the bar is 20 %% around that of 1000", writesOf4000)})
	b.Report(harness.Figure{What: "bytes of 1000 tasks", Value: harness.Median(bytes) / (1 << 20), Unit: "MiB", Bar: harness.AtMost(30)})
	return nil
}

// large leads a Framework of 10,000 tasks through its life, after one of 1000 for
// comparison.
func large(ctx context.Context, b *harness.Bench) error {
	c, err := up(ctx, b)
	if err != nil {
		return err
	}
	const few, many = 1000, 10_000
	small, err := c.lead(ctx, few)
	if err != nil {
		return fmt.Errorf("%d tasks: %w", few, err)
	}
	b.Logf("%d tasks: %s", few, small)
	memory := c.WatchMemory(ctx, component)
	big, err := c.lead(ctx, many)
	mib, memoryErr := memory()
	if err != nil {
		return fmt.Errorf("%d tasks: %w", many, err)
	}
	if memoryErr != nil {
		return memoryErr
	}
	b.Logf("%d tasks: %s", many, big)
	b.Report(harness.Figure{What: "all running after", Value: big.running.Seconds(), Unit: "s"})
	b.Report(harness.Figure{What: "Completed after", Value: big.completed.Seconds(), Unit: "s", Note: "each task runs for 130 s"})
	b.Report(harness.Figure{What: "memory of the controller, at most", Value: mib, Unit: "MiB", Bar: harness.AtMost(1024)})
	b.Report(harness.Figure{What: "99 % of syncs within", Value: big.syncP99 * 1000, Unit: "ms", Bar: harness.AtMost(250)})
	b.Report(harness.Figure{What: "half of the writes of the status within", Value: big.writeMedian * 1000, Unit: "ms",
		Note: "from encoding to the answer; a sync does not wait for all of it"})
	b.Report(harness.Figure{What: "writes of the status", Value: big.writes, Unit: "writes",
		Note: fmt.Sprintf("%.1f MiB; of 1000 tasks %.0f writes", big.bytes/(1<<20), small.writes)})
	was, is := small.cpu.Seconds()/few, big.cpu.Seconds()/many
	b.Report(harness.Figure{What: "CPU of the controller per task, against 1000 tasks", Value: is / was, Unit: "×", Bar: harness.AtMost(1.3),
		Note: fmt.Sprintf("%.2f ms against %.2f ms", is*1000, was*1000)})
	return nil
}

// growth draws how costs grow with the number of tasks.
func growth(ctx context.Context, b *harness.Bench) error {
	c, err := up(ctx, b)
	if err != nil {
		return err
	}
	bare, running := harness.Series{Name: "bare Pods"}, harness.Series{Name: "1 Framework"}
	perTask := harness.Series{Name: "ms of CPU a task"}
	writes := harness.Series{Name: "status writes"}
	for _, tasks := range []int{100, 300, 1000, 3000} {
		was, err := c.runBare(ctx, gang, 1, tasks)
		if err != nil {
			return fmt.Errorf("%d bare Pods: %w", tasks, err)
		}
		l, err := c.lead(ctx, tasks)
		if err != nil {
			return fmt.Errorf("%d tasks: %w", tasks, err)
		}
		n := float64(tasks)
		b.Report(harness.Figure{What: fmt.Sprintf("%d tasks, against bare Pods", tasks), Value: l.running.Seconds() / was.Seconds(), Unit: "×",
			Note: fmt.Sprintf("%.2f s against %.2f s; %s", l.running.Seconds(), was.Seconds(), l)})
		bare.Points = append(bare.Points, harness.Point{X: n, Y: was.Seconds()})
		running.Points = append(running.Points, harness.Point{X: n, Y: l.running.Seconds()})
		perTask.Points = append(perTask.Points, harness.Point{X: n, Y: l.cpu.Seconds() * 1000 / n})
		writes.Points = append(writes.Points, harness.Point{X: n, Y: l.writes})
	}
	b.Draw(harness.Chart{File: "lifecycle-growth.svg", Title: "From creation to all running", X: "tasks", Y: "seconds",
		Series: []harness.Series{bare, running}})
	b.Draw(harness.Chart{File: "lifecycle-cost.svg", Title: "What the controller spends from creation to Completed", X: "tasks", Y: "",
		Series: []harness.Series{writes, perTask}})
	return nil
}
