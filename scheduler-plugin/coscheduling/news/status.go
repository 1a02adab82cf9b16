// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// countersInterval is how long the status of a group of another dialect stays as it is at least
// when only its counters change. Whoever has made the group is woken by each write of it.
const countersInterval = 10 * time.Second

// Status is what the status of a group of another dialect is to say now, nil for nothing new.
// again is in what time to ask again, 0 for not before something changes.
func (g *Gang) Status(now time.Time) (status *dialect.Status, again time.Duration) {
	if g.Group == nil || g.Group.Status == nil || g.Theirs {
		return nil, 0
	}
	before := g.Group.Status
	if g.Record.Status != nil {
		before = g.Record.Status // the watch may not have shown it yet
	}
	next := before.Next(g.Group.Spec.Minimum.Members, g.Census, g.Member)
	if next == *before {
		return nil, 0
	}
	if left := countersInterval - now.Sub(g.Record.StatusAt); next.Phase == before.Phase && left > 0 {
		return nil, left
	}
	return &next, 0
}
