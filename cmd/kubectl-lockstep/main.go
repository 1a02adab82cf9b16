// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-lockstep is a kubectl plugin. It shows Frameworks and the other jobs that Lockstep runs, and starts,
// stops, scales and retries them. The program has its user's rights, and no others.
package main

import (
	"context"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/internal/interrupt"
)

func main() {
	// The user sees errors, so client-go need not log its retries.
	klog.SetLogger(logr.Discard())
	ctx, stop := interrupt.Context()
	// The second Ctrl-C ends it at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr))
}
