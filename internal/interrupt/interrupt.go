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

// Context returns a context that ends with Ctrl-C, with SIGTERM, or when the terminal closes (not under nohup). The
// returned function restores the usual effect of these signals.
func Context() (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // To ask for it would undo that it is ignored.
		signals = append(signals, syscall.SIGHUP)
	}
	return signal.NotifyContext(context.Background(), signals...)
}
