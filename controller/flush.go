// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// outlast is a context that ends pacing.FlushTime after ctx has, unless it is cancelled.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(pacing.FlushTime, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// flush writes all that waits to be written, when nobody syncs any more. A successor
// finds Pods that no status tells of, but not the ends of those that are gone.
func (c *Controller) flush(ctx context.Context) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(c.workers)
	for key, known := range c.known.all() {
		group.Go(func() error {
			if err := c.flushOne(ctx, key, known); err != nil {
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
func (c *Controller) flushOne(ctx context.Context, key cache.ObjectName, known known) error {
	m := known.memory
	if m == nil || m.status == m.persisted && len(m.outcomes) == 0 {
		return nil
	}
	p := &pass{controller: c, key: key, memory: m, pace: known.pace, departures: known.departures}
	if same, err := p.refresh(); err != nil || !same {
		return err
	}
	plan, err := p.decide(ctx)
	if err != nil || plan.Status == m.persisted {
		return err
	}
	c.logHistory(plan.History)
	data, err := m.encoder.Encode(m.status, c.compress)
	if err != nil {
		return err
	}
	if err := p.writeOnce(ctx, data); err != nil {
		return err
	}
	p.tell(ctx)
	return nil
}
