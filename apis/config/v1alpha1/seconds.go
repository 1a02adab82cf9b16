// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"math"
	"time"
)

// Seconds turns a number of seconds that somebody wrote into a duration. What is
// too long for one, about 292 years, becomes the longest: who writes the largest
// number as frameworkCompletedRetainSec or podGracefulDeletionTimeoutSec means
// for ever, and must not get an overflow to a negative time, which means at once.
func Seconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Second)
	return time.Duration(max(-most, min(n, most))) * time.Second
}
