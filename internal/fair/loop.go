// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package fair

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Back-off of an object after a failed sync.
const (
	minRetryDelay = 100 * time.Millisecond
	maxRetryDelay = 30 * time.Second
)

// Loop syncs the objects of its queue. After a failed sync it retries the object after a back-off, which grows with
// each failure in a row, and which events of the object do not shorten. A panic fails only the sync in which it
// happens.
type Loop struct {
	Queue
	workers *Workers
	backoff *Backoff
	kind    string
	sync    func(context.Context, cache.ObjectName) error
}

// NewLoop returns a Loop that calls sync for the objects of a kind. name is the queue's name in metrics; for limits
// and patience see NewWorkers.
func NewLoop(name, kind string, limits Limits, patience time.Duration, sync func(context.Context, cache.ObjectName) error) *Loop {
	l := &Loop{Queue: NewQueue(name, clock.RealClock{}), backoff: NewBackoff(minRetryDelay, maxRetryDelay), kind: kind, sync: sync}
	l.workers = NewWorkers(l.Queue, limits, patience, l.process, nil)
	return l
}

// Longest returns the object whose sync has been running for the longest time, and for how long.
func (l *Loop) Longest() (Key, time.Duration) { return l.workers.Longest() }

// Start starts workers, which end when the queue is shut down.
func (l *Loop) Start(ctx context.Context, workers int, running *sync.WaitGroup) {
	for range workers {
		running.Go(func() { l.workers.Work(ctx, running) })
	}
}

// process syncs an object, unless the back-off is not over.
func (l *Loop) process(ctx context.Context, key Key) {
	if ctx.Err() != nil {
		return
	}
	if wait := time.Until(l.backoff.Due(key)); wait > 0 {
		l.AddAfter(key, wait)
		return
	}
	logger, object := klog.FromContext(ctx), klog.KRef(key.Namespace, key.Name)
	err := l.syncSafely(ctx, key.ObjectName)
	switch {
	case err == nil:
		l.backoff.Succeeded(key)
		return
	case ctx.Err() != nil:
		return // The error is that of stopping.
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		logger.V(4).Info("The cache is behind, the sync will be tried again", "kind", l.kind, "object", object, "reason", err.Error())
	default:
		logger.Error(err, "A sync failed, will be tried again", "kind", l.kind, "object", object)
	}
	l.AddAfter(key, l.backoff.Failed(key, time.Now()))
}

// syncSafely makes a panic an error of this one object.
func (l *Loop) syncSafely(ctx context.Context, key cache.ObjectName) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return l.sync(ctx, key)
}
