// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// resyncPeriod is how often it is looked at least for what is due, even if nothing has
// happened.
const resyncPeriod = 30 * time.Second

// waker follows the gangs: it does what is due as they have changed, and puts wake-up entries into kube-scheduler's queue.
type waker struct {
	changes   gangs.Follower
	cycles    gangs.Cycles
	wakeUps   *kube.WakeUps
	keeper    *keeper
	reporter  *status.Reporter
	evictor   *evictor
	conflicts *conflicts
	freer     *freer
}

// tend does what is due, ends reservations without a gang, and puts an entry in whenever a gang is to be planned, until ctx
// ends. It is woken when something has changed.
func (r *waker) tend(ctx context.Context) {
	for {
		r.carryOut(ctx, r.changes.Take())
		r.keeper.prune(ctx)
		select {
		case <-r.changes.Stirred():
		case <-time.After(r.wakeUp(ctx)):
		case <-ctx.Done():
			return
		}
	}
}

// carryOut does what is due.
func (r *waker) carryOut(ctx context.Context, due gangs.Due) {
	for _, report := range due.Reports {
		r.reporter.Report(report.Gang, report.After)
	}
	for _, broken := range due.Broken {
		go r.evictor.dissolve(ctx, broken.Group, broken.Rest)
	}
	for _, bound := range due.Elsewhere {
		r.conflicts.boundElsewhere(ctx, bound.Pod, bound.Known)
	}
	for _, gang := range due.Idle {
		r.freer.idle.Store(gang, time.Time{})
	}
}

// wakeUp puts an entry in if a gang is to be planned, and returns in what time to look again if nothing
// happens before.
func (r *waker) wakeUp(ctx context.Context) time.Duration {
	priority, now, again := r.cycles.Next()
	if now {
		r.wakeUps.Put(ctx, priority)
	}
	wait := resyncPeriod
	if r.keeper.keepsAny() {
		wait = room.ReplacementGrace // it may be room for nobody then
	}
	if !again.IsZero() {
		wait = min(wait, max(0, time.Until(again)))
	}
	return wait
}
