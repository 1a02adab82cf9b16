// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// idleShare is how much of the cluster may be idle, in the mean over time, for gangs of which nobody knows when they will have their
// place: one part in idleShare.
const idleShare = 5

// Idle is the account of what was kept idle for such gangs. No other work may use their room meanwhile, and the work that they wait
// for may never end. Each gang may keep room idle for as long as it has waited (Reservation.MayHold). But if many gangs have waited for
// long, most of the cluster would be idle most of the time. So what was kept idle has to be paid: the whole cluster for an hour with
// idleShare hours, half of it with half as many. The zero value is a new account. It is not safe for concurrent use.
type Idle struct{ paidBy time.Time }

// Charge charges what was kept idle for a gang between two of its cycles. before and after are the gang's reservations at their ends,
// nil for none, now is the time of the second cycle, and cluster returns what all nodes have.
func (i *Idle) Charge(before, after *Reservation, cluster func() provision.Amounts, now time.Time) {
	if before == nil || after == nil || after.held <= before.held {
		return
	}
	part, all := 0.0, cluster()
	for name, takes := range after.Takes {
		if has := all[name]; has > 0 {
			part = max(part, float64(takes)/float64(has))
		}
	}
	idle := float64(after.held-before.held) / float64(len(after.Members))
	i.paidBy = times.Later(i.paidBy, now).Add(time.Duration(part * idle * idleShare))
}

// Owed returns how long it takes until all that was kept idle is paid, 0 if it is paid.
func (i *Idle) Owed(now time.Time) time.Duration { return max(0, i.paidBy.Sub(now)) }
