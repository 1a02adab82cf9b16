// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// A gang's scheduling cycle runs on the scheduler's only scheduling goroutine, so a long cycle delays all gangs and
// Pods. Members that differ from each other, constraints among members, and slow extenders make a cycle long. A cycle
// that takes longer than cycleTimeout is given up; see package queue for what that costs the namespace.
//
// The cycle has one deadline, set when the cycle begins. Each part of the cycle gets the deadline, or an earlier one:
//
//	to find a place             all of cycleTimeout
//	  by what members prefer    a quarter of what is left, for each plan
//	  one by one                half of what is left
//	to find Pods to preempt     what is left, but at least a quarter of cycleTimeout:
//	                            a cycle may take that much longer
//	  each of several searches  an equal part of what is left
//	    packing                 half of that
//	    the plugins             the rest, of which half is to try other choices than the best

// errOverdue ends a computation that takes too long.
var errOverdue = errors.New("the scheduling cycle took too long")

// deadline is when a computation has to end.
type deadline struct {
	now func() time.Time
	at  time.Time // zero for never
}

// deadline returns when the cycle has to end.
func (c *Cluster) deadline() deadline { return deadline{c.Now, c.Deadline} }

// searchDeadline returns when the searches for Pods to preempt, which begin now, have to end.
func (c *Cluster) searchDeadline() deadline {
	if c.Deadline.IsZero() {
		return c.deadline()
	}
	return deadline{c.Now, times.Later(c.Deadline, c.Now().Add(c.CycleTimeout/4))}
}

// isOver reports whether the deadline has passed.
func (d deadline) isOver() bool { return !d.at.IsZero() && d.now().After(d.at) }

// share returns the deadline for using one n-th of the time that is left.
func (d deadline) share(n int) deadline {
	if d.at.IsZero() {
		return d
	}
	now := d.now()
	return deadline{d.now, now.Add(d.at.Sub(now) / time.Duration(n))}
}

// tooConstrained returns the message for a gang with too many kinds of members to plan in time.
func tooConstrained(kinds int, cluster *Cluster) string {
	return fmt.Sprintf("the members are of %d kinds, or constrain each other, so much that no place was found within %s",
		kinds, cluster.CycleTimeout)
}

// giveUp records that the cycle was given up.
func (s *Shortfall) giveUp() {
	s.Overdue = true
	s.Message += "; planning it was given up after that time"
}
