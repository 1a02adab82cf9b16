// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command lockstep-replay shows what Lockstep's scheduler would have done with a workload, and compares it with
// policies from textbooks.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"testing"

	"k8s.io/klog/v2"
)

// main runs the command inside a Go test, because the scheduler runs in virtual time, which Go offers only to tests
// (package synctest).
func main() {
	testing.Init()
	if err := flag.CommandLine.Parse(nil); err != nil { // The flags of package testing keep their defaults.
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	klog.LogToStderr(false) // The scheduler logs at virtual times. What it decides is in the figures.
	klog.SetOutput(io.Discard)
	debug.SetGCPercent(400) // A replay makes much garbage and keeps little: this saves a fifth of its time.
	always := func(_, _ string) (bool, error) { return true, nil }
	testing.Main(always, []testing.InternalTest{{Name: "lockstep-replay", F: func(t *testing.T) {
		if err := newCommand(t).Execute(); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		os.Exit(0) // before package testing says that the test has passed
	}}}, nil, nil)
}
