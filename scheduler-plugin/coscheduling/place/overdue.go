// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// A gang cycle runs on the scheduler's only scheduling goroutine, so whoever makes one
// last makes everybody wait. Members that differ from each other, and constraints among
// them, make a cycle long, as do slow extenders. A cycle that takes longer than
// cycleTimeout is given up; see package queue for what that costs its namespace.
//
// There is one deadline, made when the cycle begins. What is done in the cycle is handed the deadline, or an earlier one:
//
//	to find a place             all of cycleTimeout
//	  by what members prefer    a quarter of what is left, for each plan
//	  one by one                half of what is left
//	to find Pods to preempt     what is left, but a quarter of cycleTimeout at least: a cycle may take that much longer
//	  each of several searches  an equal part of what is left
//	    packing                 half of that
//	    the plugins             the rest, of which half is to try other choices than the best

// errOverdue ends what takes too long.
var errOverdue = errors.New("the scheduling cycle took too long")

// deadline is when what it is handed to has to end.
type deadline struct {
	now func() time.Time
	at  time.Time // zero for never
}

// deadline is when the cycle has to end.
func (c *Cluster) deadline() deadline { return deadline{c.Now, c.Deadline} }

// searchDeadline is when the searches for Pods to preempt have to end, which begin now.
func (c *Cluster) searchDeadline() deadline {
	if c.Deadline.IsZero() {
		return c.deadline()
	}
	return deadline{c.Now, times.Later(c.Deadline, c.Now().Add(c.CycleTimeout/4))}
}

// isOver says whether what it is handed to has to end.
func (d deadline) isOver() bool { return !d.at.IsZero() && d.now().After(d.at) }

// share is when one n-th of the time is over that is left.
func (d deadline) share(n int) deadline {
	if d.at.IsZero() {
		return d
	}
	now := d.now()
	return deadline{d.now, now.Add(d.at.Sub(now) / time.Duration(n))}
}

// tooConstrained tells a gang that its kinds of members are too many to plan it in time.
func tooConstrained(kinds int, cluster *Cluster) string {
	return fmt.Sprintf("the members are of %d kinds, or constrain each other, so much that no place was found within %s",
		kinds, cluster.CycleTimeout)
}

// giveUp notes that the cycle was given up.
func (s *Shortfall) giveUp() {
	s.Overdue = true
	s.Message += "; planning it was given up after that time"
}
