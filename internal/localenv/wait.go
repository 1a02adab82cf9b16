// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Poll is how often a condition is looked at.
const Poll = 100 * time.Millisecond

// Condition says whether what is waited for has come, and what it saw, for the
// message of a time-out. An error means that it could not look, and is tried again.
type Condition func(ctx context.Context) (done bool, seen string, err error)

// Await waits until a condition is true or ctx ends. what completes the sentence
// "waiting for …" of the error, which also tells what was seen last.
func Await(ctx context.Context, what string, condition Condition) error {
	var seen string
	var last error
	err := wait.PollUntilContextCancel(ctx, Poll, true, func(ctx context.Context) (bool, error) {
		var done bool
		done, seen, last = condition(ctx)
		return done && last == nil, nil
	})
	if err == nil {
		return nil
	}
	err = fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
	if seen != "" {
		err = fmt.Errorf("%w; last seen: %s", err, seen)
	}
	if last != nil {
		err = fmt.Errorf("%w; last error: %w", err, last)
	}
	return err
}
