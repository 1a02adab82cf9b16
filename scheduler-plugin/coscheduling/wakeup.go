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

// resyncPeriod is how long the waker waits at most if nothing happens.
const resyncPeriod = 30 * time.Second

// waker carries out what is due after changes of gangs, and puts wake-up entries into kube-scheduler's queue.
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

// tend runs until ctx ends. After each change of a gang it carries out what is due, ends reservations that are over,
// and puts a wake-up entry into the queue if a gang is due. Methods of package gangs that change a gang wake tend; see
// gangs/due.go.
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

// carryOut hands what is due to the reporter, the evictor, the conflicts and the freer.
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

// wakeUp puts an entry into the queue if a gang is due. It returns how long to wait if nothing happens before.
func (r *waker) wakeUp(ctx context.Context) time.Duration {
	priority, now, again := r.cycles.Next()
	if now {
		r.wakeUps.Put(ctx, priority)
	}
	wait := resyncPeriod
	if !r.keeper.room.IsEmpty() {
		wait = room.ReplacementGrace // by then a reservation may be over
	}
	if !again.IsZero() {
		wait = min(wait, max(0, time.Until(again)))
	}
	return wait
}
