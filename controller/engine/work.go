// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"runtime/debug"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
	"github.com/lockstep-k8s/lockstep/internal/fair"
)

// process syncs an owner, unless the controller is asked to stop.
func (e *Engine) process(ctx context.Context, key fair.Key) {
	if ctx.Err() != nil {
		return
	}
	owners := e.byKind[key.Kind]
	if !owners.isFilled() {
		return // All of them are queued when their caches are filled.
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), owners.logName(), klog.KRef(key.Namespace, key.Name))
	// Begun work is brought to the end when the controller is asked to stop: what came of a request that is not answered
	// would not be written.
	requests, cancel := outlast(ctx)
	defer cancel()
	turn := &turn{begun: e.clock.Now(), inFlight: func() int { return e.fairWorkers.InFlight(key.Namespace) }}
	if err := owners.syncSafely(klog.NewContext(requests, logger), key.ObjectName, turn); err != nil {
		e.metrics.syncErrors.Inc()
		logger.Error(err, "Syncing a "+key.Kind+" failed, will be tried again")
	}
}

// syncSafely turns a panic into an error of the owner. After a panic the engine forgets everything about the owner
// except what is stored. syncSafely tries again after the longest back-off, because the panic will most likely happen
// again.
func (o *Owners[O, S]) syncSafely(ctx context.Context, key cache.ObjectName, turn *turn) (err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		err = fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		o.metrics.panics.Inc()
		if pace := o.known.reread(key); pace != nil {
			pace.Refusals.Refused(wholeSync, o.clock.Now(), pacing.MaxBackoff, o.entropy.Between)
		}
		o.addAfter(key, pacing.MaxBackoff)
		if entry, lookErr := o.cached(key); lookErr == nil && entry != nil {
			o.events.Eventf(o.reference(entry.owner), corev1.EventTypeWarning, ReasonPanicked,
				"Internal error of the controller while syncing this %s; it will be tried again: %v", o.resource.Kind, value)
		}
	}()
	return o.sync(ctx, key, turn)
}
