// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package localenv

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Poll is how often a test checks a condition that has to hold all the time.
const Poll = 100 * time.Millisecond

const (
	// firstPoll is after which time Await checks a condition again.
	firstPoll = 50 * time.Millisecond
	// lastPoll is how seldom Await checks a condition in the end.
	lastPoll = 400 * time.Millisecond
)

// Condition reports whether the awaited state is reached. seen describes the present state, for the message of a
// time-out. If Condition returns an error, it is called again.
type Condition func(ctx context.Context) (done bool, seen string, err error)

// Await waits until a condition is true or ctx ends. The longer it waits, the less often it checks the condition, to
// save processor time. `what` completes "waiting for …" in the error, which also names the last seen state.
func Await(ctx context.Context, what string, condition Condition) error {
	var seen string
	var last error
	backoff := wait.Backoff{Duration: firstPoll, Factor: 1.2, Steps: 20, Cap: lastPoll}
	err := backoff.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
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
