// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// syncTime is how long a sync of more than a few tasks begins anything new: rounds,
// and actions within them, of which there may be thousands. A Framework that is not
// at rest by then goes to the end of the queue, and what has changed meanwhile is
// noticed. One of few tasks has few rounds anyway, and would wait behind all others
// before each.
const syncTime = 100 * time.Millisecond

// patience is how long after its beginning a sync of more than a few tasks waits for
// requests before it gives its worker back: the status of thousands of tasks takes a
// busy API server a while to store.
const patience = 200 * time.Millisecond

// turn is the time that a worker has for a sync. When it is over, the worker goes on
// to other Frameworks. A sync that still waits for requests then ends when they
// return; until it has ended there is no other of the same Framework.
type turn struct {
	clock clock.PassiveClock
	begun time.Time
	once  sync.Once
	over  chan struct{}
}

func newTurn(clock clock.PassiveClock) *turn {
	return &turn{clock: clock, begun: clock.Now(), over: make(chan struct{})}
}

// end gives the worker back. It may be called again.
func (t *turn) end() {
	t.once.Do(func() { close(t.over) })
}

// spent says whether nothing new is to be begun for the Framework of a record.
func (t *turn) spent(rec *record) bool {
	return rec.tasks() >= fewTasks && t.clock.Since(t.begun) >= syncTime
}

// await runs requests, and ends the turn if they take too long.
func (t *turn) await(rec *record, requests func()) {
	if rec.tasks() >= fewTasks {
		timer := time.AfterFunc(patience-t.clock.Since(t.begun), t.end)
		defer timer.Stop()
	}
	requests()
}
