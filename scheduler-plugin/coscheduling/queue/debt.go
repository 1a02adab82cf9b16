// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// A cycle runs on the scheduler's only scheduling goroutine, so a long cycle delays all gangs and Pods.
//
//   - A cycle that was given up after a time d puts its namespace in debt for 9·d. Meanwhile no gang of the namespace has a
//     cycle if its last cycle was given up or it never had a cycle. So each namespace spends at most a tenth of the time on
//     such cycles.
//   - All gangs whose last cycle was long and in vain, given up or not, together have a quarter of the time.

// overdueShare and slowShareOfAll are the inverse of these shares: a tenth and a quarter.
const (
	overdueShare   = 10
	slowShareOfAll = 4
)

// Debts holds the end of each namespace's debt.
type Debts map[string]time.Time

// Owe puts a namespace in debt for nine times the time that a cycle took.
func (d Debts) Owe(namespace string, took time.Duration, now time.Time) {
	for other, until := range d {
		if !until.After(now) {
			delete(d, other)
		}
	}
	d[namespace] = times.Later(d[namespace], now.Add((overdueShare-1)*took))
}

// of returns the time until which a gang has no cycle because of its namespace's debt, zero for no debt.
func (d Debts) of(g *gang) time.Time {
	if g.overdue || !g.hadTurn {
		return d[g.rank.Key.Namespace]
	}
	return time.Time{}
}
