// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package interrupt makes command-line programs end in an orderly way on Ctrl-C.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context ends with Ctrl-C, with SIGTERM, and when the terminal closes, unless the program was started by nohup. The
// function gives these signals back their usual effect.
func Context() (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // To ask for it would undo that it is ignored.
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}
