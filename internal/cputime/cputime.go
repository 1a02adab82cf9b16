// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cputime measures work by its processor time, which other work on the machine hardly changes.
package cputime

import (
	"fmt"
	"syscall"
	"time"
)

// Used returns how long the processors have worked for this process.
func Used() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("reading the processor time of this process: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// Benchmark is a benchmark of package testing.
type Benchmark interface {
	Fatal(args ...any)
	ReportMetric(n float64, unit string)
}

// Start begins to measure CPU time. Call report at the end with the number of operations n; it adds the metric
// cpu-ms/op to the benchmark.
func Start(b Benchmark) (report func(n int)) {
	before, err := Used()
	if err != nil {
		b.Fatal(err)
	}
	return func(n int) {
		after, err := Used()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64((after-before).Milliseconds())/float64(n), "cpu-ms/op")
	}
}
