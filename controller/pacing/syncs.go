// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "time"

// Over reports whether a sync has to stop. begun is when it began, and requests is how many requests it has made.
func Over(begun, now time.Time, requests int) bool {
	elapsed := now.Sub(begun)
	return elapsed >= turnTime && requests >= turnRequests || elapsed >= longestTurn
}

// Syncs is what is remembered of the syncs of one owner.
type Syncs struct {
	// decided is when the last plan was made, and ended is when the last sync
	// ended.
	decided, ended time.Time
	// unfinished says that the last sync left something to do at once.
	unfinished bool
	// rounds is the number of rounds since the owner was last at rest.
	rounds int
}

// Due returns when the next sync of an owner may begin; zero means at once. tasks is the number of the owner's tasks.
func (s *Syncs) Due(tasks int) time.Time {
	if s.unfinished {
		return time.Time{}
	}
	return s.ended.Add(decideTime(tasks))
}

// Fresh reports whether the last plan is new enough to carry on with.
func (s *Syncs) Fresh(now time.Time, tasks int) bool {
	return now.Before(s.decided.Add(decideTime(tasks)))
}

// Restless reports whether the owner has had too many rounds in a row without coming to rest.
func (s *Syncs) Restless(tasks int) bool { return s.rounds >= maxRounds+tasks }

// Rounds returns the number of rounds since the owner was last at rest.
func (s *Syncs) Rounds() int { return s.rounds }

// Round records that a round has found something to do.
func (s *Syncs) Round() { s.rounds++ }

// Decided records that a plan was made.
func (s *Syncs) Decided(now time.Time) { s.decided = now }

// Rested records that the owner is at rest: nothing is left to do, except after a back-off.
func (s *Syncs) Rested() { s.rounds = 0 }

// Ended records that a sync has ended. unfinished says that it left something that has to be done at once.
func (s *Syncs) Ended(now time.Time, unfinished bool) {
	s.ended, s.unfinished = now, unfinished
}

// decideTime returns how long a decision may occupy a worker, given the number of tasks.
func decideTime(tasks int) time.Duration {
	return time.Duration(tasks) * decideCost
}
