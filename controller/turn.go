// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// turn is a pacing.Turn on a worker, which goes on to other Frameworks when it is
// over. A sync that still waits for requests then ends when they return; until it
// has ended there is no other of the same Framework.
type turn struct {
	pacing.Turn
	clock clock.PassiveClock
	once  sync.Once
	over  chan struct{}
}

func newTurn(clock clock.PassiveClock) *turn {
	return &turn{Turn: pacing.Turn{Begun: clock.Now()}, clock: clock, over: make(chan struct{})}
}

// end gives the worker back. It may be called again.
func (t *turn) end() {
	t.once.Do(func() { close(t.over) })
}

// await runs requests for so many tasks, and ends the turn if they take too long.
func (t *turn) await(tasks int, requests func()) {
	if pacing.Bounded(tasks) {
		timer := time.AfterFunc(pacing.Patience-t.clock.Since(t.Begun), t.end)
		defer timer.Stop()
	}
	requests()
}
