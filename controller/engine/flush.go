// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// outlast returns a context that ends pacing.FlushTime after ctx, unless cancelled.
func outlast(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(pacing.FlushTime, cancel) })
	return longer, func() {
		stop()
		cancel()
	}
}

// flushAll flushes all cores concurrently. They share the time that is left, because the kubelet kills the controller
// after its grace period.
func (e *Engine) flushAll(ctx context.Context) {
	var flushing sync.WaitGroup
	for _, owners := range e.inOrder {
		flushing.Go(func() { owners.flush(ctx) })
	}
	flushing.Wait()
}

// flush writes the statuses that wait to be written, after all syncs have ended. The next leader can find Pods that no
// status mentions, but it can't learn the results of Pods that are gone.
func (o *Owners[O, S]) flush(ctx context.Context) {
	ctx, cancel := outlast(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(o.workers)
	for key, known := range o.known.all() {
		group.Go(func() error {
			if err := o.flushOne(ctx, key, known); err != nil {
				klog.FromContext(ctx).Error(err, "What is known of a "+o.resource.Kind+" could not be written before the end",
					o.logKey, klog.KRef(key.Namespace, key.Name))
			}
			return nil
		})
	}
	_ = group.Wait() // No function returns an error.
}

// flushOne adds the results of the last actions to an owner's status and writes the status, without starting new
// actions. A stored status that has changed meanwhile is not overwritten, because another controller may already lead.
func (o *Owners[O, S]) flushOne(ctx context.Context, key cache.ObjectName, known known[O, S]) error {
	m := known.memory
	if m == nil || m.status == m.persisted && len(m.outcomes) == 0 {
		return nil
	}
	p := &pass[O, S]{owners: o, key: key, memory: m, pace: known.pace, contents: known.contents, departures: known.departures}
	if same, err := p.refresh(); err != nil || !same {
		return err
	}
	next, err := p.decide(ctx)
	if err != nil || next.Status == m.persisted {
		return err
	}
	if next.Before != nil {
		next.Before()
	}
	data, err := m.decider.Encode(m.status)
	if err != nil {
		return err
	}
	if err := p.writeOnce(ctx, data); err != nil {
		return err
	}
	p.tell(ctx)
	return nil
}
