// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"time"

	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// Idle is the account of the nodes that reservations kept idle for gangs without a known start. No other work may use these nodes
// meanwhile, and the work for which the gangs wait may never end. Each gang may keep nodes idle for as long as the gang has waited
// (Reservation.MayHold). But if many gangs have waited for long, most of the cluster would be idle most of the time. So idle time has
// to be paid for. If 2 % of the cluster may be idle, an hour in which the whole cluster was idle is paid for with 50 hours, and an hour of
// half of the cluster with 25. What is idle after a reservation's last renewal, mostly for a minute, costs nothing. The zero value is a
// new account. An account is not safe for concurrent use.
type Idle struct{ paidBy time.Time }

// Charge charges what was idle for a gang between its last two cycles. now is the time of the second, which has renewed the gang's
// reservation, r. percent is how much of the cluster may be idle in the mean over time, 1 to 100. cluster returns what all nodes have. A
// resource that nodes need not list, such as a device, may seem to be idle in more than the whole cluster, and counts as all of it then.
func (i *Idle) Charge(r *Reservation, percent int32, cluster func() provision.Amounts, now time.Time) {
	if r.unused.IsZero() {
		return
	}
	part, all := 0.0, cluster()
	for name, amount := range r.unused {
		if has := all[name]; has > 0 {
			part = max(part, min(1, float64(amount)/float64(has)))
		}
	}
	i.paidBy = times.Later(i.paidBy, now).Add(time.Duration(part * float64(r.unusedFor) * 100 / float64(percent)))
}

// Owed returns how long it takes until all idle time is paid for, 0 if it is.
func (i *Idle) Owed(now time.Time) time.Duration { return max(0, i.paidBy.Sub(now)) }
