// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// Sync syncs one owner once, when nobody else does.
func (o *Owners[O, S]) Sync(ctx context.Context, key cache.ObjectName) error {
	return o.sync(ctx, key, &turn{begun: o.clock.Now(), inFlight: func() int { return 1 }})
}

// Status is what is known of the status of an owner, of which some may not be written
// yet. Nil if nothing is known.
func (o *Owners[O, S]) Status(key cache.ObjectName) *S {
	if known := o.known.all()[key]; known.memory != nil {
		return known.memory.status
	}
	return nil
}

// WaitingEvents is how many events of an owner wait for its status to be written.
func (o *Owners[O, S]) WaitingEvents(key cache.ObjectName) int {
	return len(o.known.all()[key].memory.events)
}

// Queued is how many syncs wait, and EmptyQueue forgets them.
func (e *Engine) Queued() int { return e.queue.Len() }

// EmptyQueue is described at Queued.
func (e *Engine) EmptyQueue() {
	for e.queue.Len() > 0 {
		next, _ := e.queue.Get()
		e.queue.Done(next)
	}
}

// Discard ends an engine that was never run.
func (e *Engine) Discard() {
	e.queue.ShutDown()
	e.teller.discard()
	e.fields.queue.ShutDown()
}

// MaxConflicts is how often a write of the status is tried.
const MaxConflicts = maxConflicts
