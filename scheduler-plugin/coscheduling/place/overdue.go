// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"time"
)

// A gang cycle runs on the scheduler's only scheduling goroutine, so whoever makes one
// last makes everybody wait. Members that differ from each other, and constraints among
// them, make a cycle long, as do slow extenders. A cycle that takes longer than
// turnTimeout is given up; see package line for what that costs its namespace.

// errOverdue ends a turn that takes too long.
var errOverdue = errors.New("the turn took too long")

// isOverdue says whether the turn has to end.
func (c *Cluster) isOverdue() bool {
	return !c.Deadline.IsZero() && c.Now().After(c.Deadline)
}

// partOfTurn is when one n-th of the time is over that the turn has left; zero for never.
func (c *Cluster) partOfTurn(n int) time.Time {
	if c.Deadline.IsZero() {
		return time.Time{}
	}
	now := c.Now()
	return now.Add(c.Deadline.Sub(now) / time.Duration(n))
}

// tooConstrained tells a gang that its kinds of members are too many to plan it in time.
func tooConstrained(kinds int, cluster *Cluster) string {
	return fmt.Sprintf("the members are of %d kinds, or constrain each other, so much that no place was found within %s",
		kinds, cluster.TurnTimeout)
}

// giveUp notes that the turn was given up.
func (s *Shortfall) giveUp() {
	s.Overdue = true
	s.Message += "; planning it was given up after that time"
}
