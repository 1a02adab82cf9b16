// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// work syncs Frameworks until the queue shuts down. A sync that outlasts the patience
// of the worker goes on, and is among those that are still running.
func (c *Controller) work(ctx context.Context, running *sync.WaitGroup) {
	for {
		key, shutdown := c.queue.Get()
		if shutdown {
			return
		}
		if !c.flights.begin(key) {
			c.queue.Done(key)
			continue
		}
		begun, ended := c.clock.Now(), make(chan struct{})
		running.Go(func() {
			defer close(ended)
			c.process(ctx, key)
			c.land(key)
		})
		patience := time.NewTimer(pacing.Patience)
		select {
		case <-ended:
		case <-patience.C:
		}
		patience.Stop()
		c.metrics.syncSeconds.Observe(c.clock.Since(begun).Seconds())
	}
}

// land ends a sync, and lets others begin that had to wait for it.
func (c *Controller) land(key cache.ObjectName) {
	for _, next := range c.flights.end(key) {
		c.queue.Add(next)
	}
	c.queue.Done(key) // Until now the queue let nobody else have the Framework.
}

func (c *Controller) process(ctx context.Context, key cache.ObjectName) {
	if ctx.Err() != nil {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "framework", klog.KRef(key.Namespace, key.Name))
	// What has begun is brought to its end when the controller is asked to stop: what
	// came of a request that is not answered would not be written.
	requests, cancel := outlast(ctx)
	defer cancel()
	if err := c.syncSafely(klog.NewContext(requests, logger), key); err != nil {
		c.metrics.syncErrors.Inc()
		logger.Error(err, "Syncing a Framework failed, will be tried again")
	}
}

// syncSafely makes a panic an error of this one Framework, of which nothing is known
// from then on but what is stored. It is tried again when the longest back-off is
// over: what made it panic is still there, most likely.
func (c *Controller) syncSafely(ctx context.Context, key cache.ObjectName) (err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		c.metrics.panics.Inc()
		if pace := c.known.reread(key); pace != nil {
			pace.Refusals.Refused(wholeSync, c.clock.Now(), pacing.MaxBackoff, c.entropy.Between)
		}
		c.queue.AddAfter(key, pacing.MaxBackoff)
		if entry, lookErr := c.framework(key); lookErr == nil && entry != nil {
			c.events.Eventf(reference(entry), corev1.EventTypeWarning, reasonPanicked,
				"The controller met a fault of its own and goes on without this Framework, until it tries again: %v", value)
		}
	}()
	turn := &turn{begun: c.clock.Now(), flights: func() int { return c.flights.of(key.Namespace) }}
	return c.sync(ctx, key, turn)
}
