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
// turnTimeout is given up, and its namespace is in debt: of a turn that took d, for 9·d.
// Meanwhile none of its gangs has a turn whose turns are known to take too long, or that
// never had one. So such gangs have a tenth of the time for each namespace, however many
// there are, and cost others no more.

// errOverdue ends a cycle that takes too long.
var errOverdue = errors.New("the turn took too long")

// overdueShare is what part of the time the turns that take too long may take: one in so
// many.
const overdueShare = 10

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

// owe notes that a turn of a gang was given up after a time. The caller holds the lock.
func (t *tracker) owe(g *gang, took time.Duration) {
	now := t.now()
	for namespace, until := range t.debts {
		if !until.After(now) {
			delete(t.debts, namespace)
		}
	}
	t.debts[g.key.Namespace] = now.Add((overdueShare - 1) * took)
}

// inDebt is until when a gang has no turn because turns of its namespace took too long.
// Zero if it may have one. The caller holds the lock.
func (t *tracker) inDebt(g *gang) time.Time {
	if g.attempt.overdue || g.attempt.first.IsZero() {
		return t.debts[g.key.Namespace]
	}
	return time.Time{}
}
