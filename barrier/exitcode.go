// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package barrier

import (
	"errors"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Errors of FromEnv and Run that have an exit code of their own.
var (
	// ErrConfig is a bad configuration.
	ErrConfig = errors.New("bad configuration")
	// ErrNotFound says that there is no such Framework.
	ErrNotFound = errors.New("no such Framework")
	// ErrNotReady says that some tasks had no address until the end.
	ErrNotReady = errors.New("not every task has an address")
	// ErrNoAddress says that the name of Resolve had no address until the end.
	ErrNoAddress = errors.New("no address")
	// ErrTerminated says that the process was asked to end.
	ErrTerminated = errors.New("asked to end")
)

// Exit codes. The controller reads 201 as a transient conflict (other jobs may
// hold what the missing tasks need), which it retries after a random delay, and
// 210 as permanent. 143 is what a program leaves that ends by SIGTERM; as the
// first process of a container it would not, by itself.
const (
	ExitSucceeded  = 0
	ExitFailed     = 1
	ExitTerminated = 143
	ExitNotReady   = int(frameworkv1.CodeContainerTransientConflictFailed)
	ExitPermanent  = int(frameworkv1.CodeContainerPermanentFailed)
)

// ExitCode is the code to exit with after err, nil included. Of an error that
// tells nothing about a next time it is ExitFailed.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitSucceeded
	case errors.Is(err, ErrConfig), errors.Is(err, ErrNotFound):
		return ExitPermanent
	case errors.Is(err, ErrNotReady):
		return ExitNotReady
	case errors.Is(err, ErrTerminated):
		return ExitTerminated
	default:
		return ExitFailed
	}
}
