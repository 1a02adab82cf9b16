// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"sync"
	"time"
)

// Workers sync the objects of a queue.
type Workers struct {
	queue    Queue
	flights  *flights
	patience time.Duration
	process  func(ctx context.Context, key Key)
	watch    Watch
	// busy is called with the time for which a sync has used a worker. It may be nil.
	busy func(time.Duration)
}

// NewWorkers returns workers that call process for the objects of a queue. If process has not returned after patience,
// the worker goes on to other objects while process continues.
func NewWorkers(queue Queue, limits Limits, patience time.Duration,
	process func(context.Context, Key), busy func(time.Duration)) *Workers {
	return &Workers{queue: queue, flights: newFlights(limits), patience: patience, process: process, busy: busy}
}

// InFlight returns how many syncs of a namespace are begun and not ended.
func (w *Workers) InFlight(namespace string) int { return w.flights.of(namespace) }

// Longest returns the object whose sync has been running for the longest time, and for how long.
func (w *Workers) Longest() (Key, time.Duration) { return w.watch.Longest() }

// Work is the loop of one worker. Work returns when the queue is shut down. A sync that takes longer than the patience
// continues without the worker, and is counted in `running`.
func (w *Workers) Work(ctx context.Context, running *sync.WaitGroup) {
	w.WorkWhen(ctx, running, func(context.Context) bool { return true })
}

// WorkWhen is the loop of one worker that takes an object only after `may` has returned true. WorkWhen returns when the
// queue is shut down, or when `may` returns false.
func (w *Workers) WorkWhen(ctx context.Context, running *sync.WaitGroup, may func(context.Context) bool) {
	for may(ctx) {
		key, shutdown := w.queue.Get()
		if shutdown {
			return
		}
		if !w.flights.begin(key) {
			w.queue.Done(key)
			continue
		}
		w.watch.Begin(key)
		begun, ended := time.Now(), make(chan struct{})
		running.Go(func() {
			defer close(ended)
			defer w.land(key)
			w.process(ctx, key)
		})
		patience := time.NewTimer(w.patience)
		select {
		case <-ended:
		case <-patience.C:
		}
		patience.Stop()
		if w.busy != nil {
			w.busy(time.Since(begun))
		}
	}
}

// land ends a sync, and lets others begin that had to wait.
func (w *Workers) land(key Key) {
	w.watch.End(key)
	for _, next := range w.flights.end(key) {
		w.queue.Add(next)
	}
	w.queue.Done(key) // Until now the queue let nobody else have the object.
}
