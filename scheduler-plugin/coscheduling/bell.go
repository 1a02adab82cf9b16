// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import "time"

// tendBell rings whenever a gang is to have its turn, and gives up the room that is kept for
// nobody, until the scheduler ends. It is woken when something has changed.
func (e *engine) tendBell() {
	for {
		e.prune()
		select {
		case <-e.stirred:
		case <-time.After(e.ring()):
		case <-e.ctx.Done():
			return
		}
	}
}

// stir has the bell be looked at soon. It does not block.
func (e *engine) stir() {
	select {
	case e.stirred <- struct{}{}:
	default: // it is to be, anyway
	}
}

// ring rings if a gang is to have its turn, and returns in what time to look again if nothing
// happens before.
func (e *engine) ring() time.Duration {
	priority, now, again := e.gangs.Next()
	if now {
		e.queue.Bell.Ring(e.ctx, priority)
	}
	wait := resyncPeriod
	if len(e.room.InOrder()) > 0 {
		wait = replacementGrace // it may be room for nobody then
	}
	if !again.IsZero() {
		wait = min(wait, max(0, time.Until(again)))
	}
	return wait
}
