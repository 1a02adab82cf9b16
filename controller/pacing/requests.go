// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "time"

// Parallel is how many requests to have under way at an API server that has
// answered a number of them in an elapsed time, from 4 to most.
func Parallel(answered int, elapsed time.Duration, most int) int {
	if elapsed <= 0 {
		return most
	}
	return min(most, max(minParallel, int(float64(answered)*float64(answerTime)/float64(elapsed))))
}

// Share is how many requests a sync may have under way that wants some, when its
// namespace has a number of syncs in flight.
func Share(wanted, flights int) int {
	return max(1, min(wanted, maxRequests/max(1, flights)))
}

// minAskAgain is the pause before the API server is asked again after it could not answer.
const minAskAgain = time.Minute

// AskAgain is the pause before the API server is asked again after a number of failures in a row.
func AskAgain(tries int) time.Duration { return min(doubled(minAskAgain, tries), MaxAskAgain) }
