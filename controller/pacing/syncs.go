// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package pacing

import "time"

// Over reports whether a sync has to stop, given when it began and how many requests it has made.
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

// Due returns when the next sync of an owner with a number of tasks may begin. The zero time means at once.
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

// Restless reports whether the owner has had too many rounds since it was last at rest.
func (s *Syncs) Restless(tasks int) bool { return s.rounds >= maxRounds+tasks }

// Rounds returns the number of rounds since the owner was last at rest.
func (s *Syncs) Rounds() int { return s.rounds }

// Round records that a round has found something to do.
func (s *Syncs) Round() { s.rounds++ }

// Decided records that a plan was made.
func (s *Syncs) Decided(now time.Time) { s.decided = now }

// Rested records that there is nothing to do at once, or nothing without a back-off.
func (s *Syncs) Rested() { s.rounds = 0 }

// Ended records that a sync has ended, and whether the sync left something to do at once.
func (s *Syncs) Ended(now time.Time, unfinished bool) {
	s.ended, s.unfinished = now, unfinished
}

// decideTime returns how much time of a worker a decision about a number of tasks may take.
func decideTime(tasks int) time.Duration {
	return time.Duration(tasks) * decideCost
}
