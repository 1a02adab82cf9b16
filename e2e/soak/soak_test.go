//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package soak has Frameworks come, run and go at full rate, for as long as -soak says, and holds that
// nothing of controller and scheduler grows. `make soak-cluster` runs it for hours.
package soak

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
)

var (
	// cluster is what the tests share. TestMain sets it once, before any test.
	cluster *testbed.Cluster
	lasts   = flag.Duration("soak", time.Minute, "how long Frameworks come and go")
)

func TestMain(m *testing.M) {
	os.Exit(testbed.Main(m, localenv.Options{SimulatedNodes: 10, NodeCPU: "16"}, func(_ context.Context, c *testbed.Cluster) error {
		cluster = c
		return nil
	}))
}

// figure is one of a program, or of the cluster.
type figure struct {
	name string
	unit float64
	// isMemory is of what grows with what the program remembers.
	isMemory bool
}

const (
	// most is by which part a figure may grow while the second half of a soak lasts.
	most = 0.1
	// mostBefore is that of memory in a soak that is shorter than settled.
	mostBefore = 0.25
	// settled is how long a soak is whose first half ends when memory may be flat: client-go remembers each event
	// for six to twelve minutes.
	settled = 24 * time.Minute
)

// bound is by which part the figure may grow.
func (f figure) bound() float64 {
	if f.isMemory && *lasts < settled {
		return mostBefore
	}
	return most
}

const mib = 1 << 20

// figures are what is held to be flat.
var figures = []figure{
	{name: "controller: heap at which Go collects, MiB", unit: mib, isMemory: true},
	{name: "controller: resident memory, MiB", unit: mib, isMemory: true},
	{name: "controller: goroutines", unit: 1},
	{name: "scheduler: heap at which Go collects, MiB", unit: mib, isMemory: true},
	{name: "scheduler: resident memory, MiB", unit: mib, isMemory: true},
	{name: "scheduler: goroutines", unit: 1},
	{name: "objects in etcd, without events", unit: 1},
}

// TestNothingGrowsWhileFrameworksComeAndGo reads the figures all the time. The first half is for
// caches to fill; in the second half the line through them must not rise.
func TestNothingGrowsWhileFrameworksComeAndGo(t *testing.T) {
	namespace := cluster.Namespace(t)
	token := cluster.ReaderOfMetrics(t, namespace)
	objects := cluster.CountStored(t)
	traffic := startTraffic(t, namespace)
	read := map[string][]float64{}
	every := max(time.Second, *lasts/240)
	var half int64
	for began := time.Now(); time.Since(began) < *lasts; {
		testbed.PauseFor(t, every)
		for name, value := range readFigures(t, token, objects) {
			read[name] = append(read[name], value)
		}
		if time.Since(began) < *lasts/2 {
			half = traffic.ended.Load()
		}
	}
	ended := traffic.stop()
	t.Logf("measured: soak | minutes since the beginning | %.0f | %.0f | |", lasts.Minutes()/2, lasts.Minutes())
	t.Logf("measured: soak | Frameworks that have come and gone | %d | %d | %.1f a second |", half, ended, float64(ended)/lasts.Seconds())
	for _, figure := range figures {
		all := read[figure.name]
		if len(all) < 10 {
			t.Fatalf("%s was read %d times only", figure.name, len(all))
		}
		line := testbed.TrendOf(all[len(all)/2:])
		t.Logf("measured: soak | %s | %.1f | %.1f | %+.1f %% |", figure.name, line.From/figure.unit, line.To/figure.unit, 100*line.Growth())
		if line.Growth() > figure.bound() {
			t.Errorf("%s grew by %.1f %% in the second half, want at most %.0f %%", figure.name, 100*line.Growth(), 100*figure.bound())
		}
	}
	if ended == 0 {
		t.Error("no Framework has ended")
	}
}

// readFigures reads all figures once.
func readFigures(t *testing.T, token string, objects func(context.Context) (int, error)) map[string]float64 {
	t.Helper()
	read := map[string]float64{}
	for program, scheme := range map[string]string{"controller": "http", "scheduler": "https"} {
		running, err := cluster.Program(program)
		if err != nil {
			t.Fatal(err)
		}
		if running.Restarts > 0 {
			t.Fatalf("the %s has ended, and was started again", program)
		}
		var text string
		testbed.Eventually(t, "the metrics of the "+program, func(ctx context.Context) (bool, string, error) {
			status, answer, err := testbed.Ask(ctx, scheme+"://"+running.Address+"/metrics", token)
			text = answer
			return status == http.StatusOK, fmt.Sprintf("%d: %.200s", status, answer), err // Under load, the API server may not say in time who asks.
		})
		metrics := valuesOf(t, text, "go_memstats_next_gc_bytes", "process_resident_memory_bytes", "go_goroutines")
		read[program+": heap at which Go collects, MiB"] = metrics["go_memstats_next_gc_bytes"]
		read[program+": resident memory, MiB"] = metrics["process_resident_memory_bytes"]
		read[program+": goroutines"] = metrics["go_goroutines"]
	}
	stored, err := objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read["objects in etcd, without events"] = float64(stored)
	return read
}

// valuesOf are series without labels in a text of metrics.
func valuesOf(t *testing.T, text string, series ...string) map[string]float64 {
	t.Helper()
	values := map[string]float64{}
	for _, name := range series {
		value, found := testbed.SeriesIn(t, text, name)
		if !found {
			t.Fatalf("there is no metric %s", name)
		}
		values[name] = value
	}
	return values
}
