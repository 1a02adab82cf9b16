// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/lifecycle"
)

// maxRounds is how many rounds in a row a Framework may take, besides one for
// each of its tasks. It needs fewer. One that does not come to rest, because
// somebody undoes at once what the controller does, is backed off like any other
// error.
const maxRounds = 500

// syncTime is how long a sync of more than a few tasks begins anything new: rounds,
// and actions within them, of which there may be thousands. A Framework that is not
// at rest by then goes to the end of the queue, and what has changed meanwhile is
// noticed. One of few tasks has few rounds anyway, and would wait behind all others
// before each.
const syncTime = 100 * time.Millisecond

// syncCostPerTask is how much time of a worker a sync may take per task: a
// Framework is synced at most every so often times its tasks, so that Pod events
// of a large one cost no more per Pod than those of a small one.
const syncCostPerTask = 50 * time.Microsecond

// sync brings one Framework as far as it gets without waiting.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName) error {
	entry, err := c.framework(key)
	if err != nil {
		return fmt.Errorf("reading the cache: %w", err)
	}
	if entry == nil {
		c.forget(key)
		return nil
	}
	rec, err := c.record(key, entry)
	if rec == nil {
		return err
	}
	if wait := rec.lastSync.Add(time.Duration(rec.tasks()) * syncCostPerTask).Sub(c.clock.Now()); wait > 0 && !rec.unfinished {
		c.queue.AddAfter(key, wait)
		return nil
	}
	rec.unfinished = false
	defer func() { rec.lastSync = c.clock.Now() }()
	begun := c.clock.Now()
	enough := func() bool { return rec.tasks() >= fewTasks && c.clock.Since(begun) >= syncTime }
	for ; !enough(); rec.rounds++ {
		if rec.rounds >= maxRounds+rec.tasks() {
			rec.rounds = 0
			return fmt.Errorf("not at rest after %d rounds", maxRounds+rec.tasks())
		}
		// The spec may have changed meanwhile.
		entry, err := c.framework(key)
		if err != nil {
			return fmt.Errorf("reading the cache: %w", err)
		}
		if entry == nil || entry.UID != rec.uid || entry.decodeError != nil {
			c.queue.Add(key)
			return nil
		}
		progressed, err := c.round(ctx, key, entry, rec, enough)
		if errors.Is(err, errCacheBehind) {
			// Nothing was written by this record, so nothing is lost with it.
			c.records.forget(key)
		}
		if err != nil || !progressed {
			rec.rounds = 0
			return err
		}
	}
	rec.unfinished = true
	c.queue.Add(key)
	return nil
}

// record returns the Framework's record, or nil if it can't be worked with: that
// is told to the user, and there is nothing to try again until it changes.
func (c *Controller) record(key cache.ObjectName, entry *frameworkEntry) (*record, error) {
	if entry.decodeError != nil {
		c.complain(key, entry, reasonUndecodable, entry.decodeError)
		return nil, nil
	}
	rec, err := c.records.get(key, entry)
	if err != nil {
		c.complain(key, entry, reasonUndecodable, err)
		return nil, nil
	}
	c.metrics.undecodable.remove(key)
	return rec, nil
}

// complain tells the user of a Framework that can't be worked with.
func (c *Controller) complain(key cache.ObjectName, entry *frameworkEntry, reason string, err error) {
	c.metrics.undecodable.add(key)
	c.recorder.Event(reference(entry), corev1.EventTypeWarning, reason, err.Error())
}

func (c *Controller) forget(key cache.ObjectName) {
	c.records.forget(key)
	c.metrics.undecodable.remove(key)
}

// round is gather, decide, persist, act. It says whether another round may find
// more to do at once. Once enough says so, it begins no more actions: what is left
// out is planned again.
func (c *Controller) round(ctx context.Context, key cache.ObjectName, entry *frameworkEntry, rec *record, enough func() bool) (bool, error) {
	logger := klog.FromContext(ctx)
	snapshot, err := c.gather(entry, rec)
	if err != nil {
		return false, fmt.Errorf("reading the cache: %w", err)
	}
	plan := lifecycle.Decide(snapshot, c.clock.Now(), c.entropy)
	if logger.V(5).Enabled() {
		logger.V(5).Info("Decided", "plan", plan.String())
	}
	c.logHistory(plan.History)
	rec.prune(snapshot.Pods)
	rec.outcomes = nil
	rec.status = plan.Status
	rec.events = append(rec.events, plan.Events...)

	wait := c.writeIn(rec, plan)
	written := wait == 0
	if written {
		if err := c.persist(ctx, entry, rec); err != nil {
			return false, err
		}
		if enough() {
			return true, plan.Err
		}
	}
	outcomes, err := c.apply(ctx, entry, rec, plan.Actions, enough)
	rec.outcomes = outcomes
	if err != nil && rec.complaint != err.Error() {
		rec.complaint = err.Error()
		c.recorder.Event(reference(entry), corev1.EventTypeWarning, reasonActionFailed, err.Error())
	}
	if err := errors.Join(plan.Err, err); err != nil {
		return false, err
	}
	if written || len(outcomes) > 0 {
		return true, nil
	}
	if wait > 0 {
		c.queue.AddAfter(key, wait)
	}
	if !plan.WakeAt.IsZero() {
		c.queue.AddAfter(key, max(0, plan.WakeAt.Sub(c.clock.Now())))
	}
	return false, nil
}
