// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// idleShare bounds how much of the cluster is idle for gangs without a known start: one part in idleShare, in the mean over time.
const idleShare = 10

// Idle is the account of the nodes that reservations kept idle for gangs without a known start. No other work may use these nodes
// meanwhile, and the work for which the gangs wait may never end. Each gang may keep nodes idle for as long as the gang has waited
// (Reservation.MayHold). But if many gangs have waited for long, most of the cluster would be idle most of the time. So idle time has
// to be paid for: an hour in which the whole cluster was idle with idleShare hours, and an hour of half of the cluster with half as
// many. The zero value is a new account. An account is not safe for concurrent use.
type Idle struct{ paidBy time.Time }

// Charge charges what was idle for a gang between its last two cycles. now is the time of the second, which has renewed the gang's
// reservation, r. cluster returns what all nodes have. A resource that nodes need not list, such as a device, may seem to be idle in
// more than the whole cluster, and counts as all of it then.
func (i *Idle) Charge(r *Reservation, cluster func() provision.Amounts, now time.Time) {
	if r.unused.IsZero() {
		return
	}
	part, all := 0.0, cluster()
	for name, amount := range r.unused {
		if has := all[name]; has > 0 {
			part = max(part, min(1, float64(amount)/float64(has)))
		}
	}
	i.paidBy = times.Later(i.paidBy, now).Add(time.Duration(part * float64(r.unusedFor) * idleShare))
}

// Owed returns how long it takes until all idle time is paid for, 0 if it is.
func (i *Idle) Owed(now time.Time) time.Duration { return max(0, i.paidBy.Sub(now)) }
