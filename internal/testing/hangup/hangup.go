// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hangup has tests of terminals that close mean the same wherever they are started.
package hangup

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// Heed keeps this process and its children from ignoring SIGHUP and SIGINT until the test ends, as they do under
// nohup, or in the background of a script.
func Heed(t testing.TB) {
	t.Helper()
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGHUP, syscall.SIGINT)
	t.Cleanup(func() { signal.Stop(heard) })
}
