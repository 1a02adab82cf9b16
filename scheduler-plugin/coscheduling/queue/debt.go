// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
)

// A cycle runs on the scheduler's only scheduling goroutine, so whoever makes one last makes
// everybody wait. A cycle that was given up because it took too long, d, puts its namespace
// in debt for 9·d. Meanwhile none of its gangs has a cycle whose cycles are known to take too
// long, or that never had one. So such gangs have a tenth of the time for each namespace,
// however many there are. And all gangs whose last cycle was long and in vain, given up or not, have a quarter of it together.

// overdueShare is what part of the time cycles of a namespace may take that are given up: 1 / overdueShare. The long cycles in vain of
// all namespaces may take 1 / slowShareOfAll.
const (
	overdueShare   = 10
	slowShareOfAll = 4
)

// Debts are until when namespaces are in debt.
type Debts map[string]time.Time

// Owe notes that a namespace took a time for which it is charged: it is in debt for nine times that.
func (d Debts) Owe(namespace string, took time.Duration, now time.Time) {
	for other, until := range d {
		if !until.After(now) {
			delete(d, other)
		}
	}
	d[namespace] = times.Later(d[namespace], now.Add((overdueShare-1)*took))
}

// of is until when a gang has no cycle because of a debt, zero if there is none.
func (d Debts) of(g *gang) time.Time {
	if g.overdue || !g.hadTurn {
		return d[g.rank.Key.Namespace]
	}
	return time.Time{}
}
