// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
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
