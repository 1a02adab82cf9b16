// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// flushTime is how long requests may go on when a controller stops: less than a
// kubelet waits before it kills.
const flushTime = 10 * time.Second

// outlast is a context that ends flushTime after ctx has, unless it is cancelled.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(flushTime, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// flush writes all that waits to be written, when nobody syncs any more. A successor
// takes Pods that no status tells of for leftovers, and deletes them.
func (c *Controller) flush(ctx context.Context) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(c.workers)
	for key, rec := range c.records.all() {
		group.Go(func() error {
			if err := c.flushOne(ctx, key, rec); err != nil {
				klog.FromContext(ctx).Error(err, "What is known of a Framework could not be written before the end",
					"framework", klog.KRef(key.Namespace, key.Name))
			}
			return nil
		})
	}
	_ = group.Wait() // No function returns an error.
}

// flushOne takes in what came of the last actions, writes the status, and begins
// nothing. Another controller may lead already: what has changed meanwhile is not
// overwritten.
func (c *Controller) flushOne(ctx context.Context, key cache.ObjectName, rec *record) error {
	if rec.status == rec.persisted && len(rec.outcomes) == 0 {
		return nil
	}
	entry, err := c.framework(key)
	if err != nil || entry == nil || entry.UID != rec.uid || entry.decodeError != nil {
		return err
	}
	plan, err := c.decide(ctx, entry, rec)
	if err != nil || plan.Status == rec.persisted {
		return err
	}
	c.logHistory(plan.History)
	data, err := rec.encoder.Encode(rec.status, c.compress)
	if err != nil {
		return err
	}
	if err := c.writeOnce(ctx, entry, rec, data); err != nil {
		return err
	}
	c.tell(ctx, entry, rec)
	return nil
}
