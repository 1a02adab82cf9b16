// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hangup makes tests of closing terminals independent of how the tests were started.
package hangup

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Heed makes this process and its children react to SIGHUP and SIGINT until the test ends. A process that was started
// by nohup, or in the background of a script, ignores these signals.
func Heed(t testing.TB) {
	t.Helper()
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(heard) })
}
