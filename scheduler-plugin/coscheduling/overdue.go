// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"fmt"
	"time"
)

// A gang cycle runs on the scheduler's only scheduling goroutine, so whoever makes one
// last makes everybody wait. Members that differ from each other, and constraints among
// them, make a cycle long, as do slow extenders. A cycle that takes longer than
// turnTimeout is given up; see package line for what that costs its namespace.

// errOverdue ends a cycle that takes too long.
var errOverdue = errors.New("the turn took too long")

// isOverdue says whether the turn has to end.
func (c *cycle) isOverdue() bool {
	return !c.deadline.IsZero() && time.Now().After(c.deadline)
}

// tooConstrained tells a gang that it takes too long to plan.
func (c *cycle) tooConstrained() string {
	return fmt.Sprintf("the members are of %d kinds, or constrain each other, so much that no place was found within %s",
		len(c.classes), c.turnTimeout())
}

func (c *cycle) turnTimeout() time.Duration {
	return c.plugins[c.view.schedulerName()].args.TurnTimeout.Duration
}

// giveUp notes in why that the turn was given up, if that is what the error says, and
// returns any other error.
func (c *cycle) giveUp(err error, why *shortfall) error {
	if !errors.Is(err, errOverdue) {
		return err
	}
	c.metrics.overdue.Inc()
	why.took = c.turnTimeout()
	why.message += "; planning it was given up after that time"
	return nil
}
