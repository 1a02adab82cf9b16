// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// resyncPeriod is how often it is looked at least for what is due, even if nothing has
// happened.
const resyncPeriod = 30 * time.Second

// stir is a note that somebody may be next, or that room may be kept for nobody.
type stir chan struct{}

func newStir() stir { return make(stir, 1) }

// leave leaves the note. It does not block.
func (s stir) leave() {
	select {
	case s <- struct{}{}:
	default: // there is one
	}
}

// waker puts wake-up entries into kube-scheduler's queue.
type waker struct {
	cycles  gangs.Cycles
	wakeUps *kube.WakeUps
	keeper  *keeper
	stirred stir
}

// tend puts an entry in whenever a gang is to be planned, and gives up the room that is kept for
// nobody, until ctx ends. It is woken when something has changed.
func (r *waker) tend(ctx context.Context) {
	for {
		r.keeper.prune(ctx)
		select {
		case <-r.stirred:
		case <-time.After(r.wakeUp(ctx)):
		case <-ctx.Done():
			return
		}
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
