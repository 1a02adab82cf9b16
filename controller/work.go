// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// process syncs a Framework, unless the controller is asked to stop.
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
	turn := &turn{begun: c.clock.Now(), inFlight: func() int { return c.fairWorkers.InFlight(key.Namespace) }}
	return c.sync(ctx, key, turn)
}
