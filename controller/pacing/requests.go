// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "time"

// Parallel returns how many requests may be under way at an API server that answered so many requests in the elapsed
// time. The result is between 4 and `most`.
func Parallel(answered int, elapsed time.Duration, most int) int {
	if elapsed <= 0 {
		return most
	}
	return min(most, max(minParallel, int(float64(answered)*float64(answerTime)/float64(elapsed))))
}

// Share returns how many requests a sync may have under way: what it wants, but no more than an equal share of the
// requests of its namespace. flights is the number of the namespace's syncs that are in flight.
func Share(wanted, flights int) int {
	return max(1, min(wanted, maxRequests/max(1, flights)))
}

// minAskAgain is the pause before the API server is asked again after it could not answer.
const minAskAgain = time.Minute

// AskAgain returns how long to wait before asking the API server again after `tries` failed attempts in a row.
func AskAgain(tries int) time.Duration { return min(doubled(minAskAgain, tries), MaxAskAgain) }
