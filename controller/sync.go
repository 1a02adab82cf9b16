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

// syncCostPerTask is how much time of a worker a look at all tasks may take per
// task: there is one at most every so often times the tasks, so that neither Pod
// events nor the creation of Pods cost more per Pod of a large Framework than of a
// small one.
const syncCostPerTask = 100 * time.Microsecond

// sync brings one Framework as far as it gets without waiting.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName, turn *turn) error {
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
	if wait := rec.lastSync.Add(rec.syncCost()).Sub(c.clock.Now()); wait > 0 && !rec.unfinished {
		c.queue.AddAfter(key, wait)
		return nil
	}
	rec.unfinished = false
	defer func() { rec.lastSync = c.clock.Now() }()
	for ; !turn.spent(rec); rec.rounds++ {
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
		progressed, err := c.round(ctx, key, entry, rec, turn)
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

// round is gather, decide, persist, act, or goes on to act as the last one has
// decided. It says whether another round may find more to do at once. Once the turn
// is spent, it begins no more actions.
func (c *Controller) round(ctx context.Context, key cache.ObjectName, entry *frameworkEntry, rec *record, turn *turn) (bool, error) {
	if rec.carriesOn(entry, c.clock.Now()) {
		_, err := c.act(ctx, entry, rec, rec.left, turn)
		return true, err
	}
	plan, err := c.decide(ctx, entry, rec)
	if err != nil {
		return false, err
	}
	c.logHistory(plan.History)
	wait := c.writeIn(rec, plan)
	written := wait == 0
	if written {
		if err := c.persist(ctx, entry, rec, turn); err != nil {
			return false, err
		}
		if turn.spent(rec) {
			rec.left = plan.Actions
			return true, plan.Err
		}
	}
	acted, err := c.act(ctx, entry, rec, plan.Actions, turn)
	if err := errors.Join(plan.Err, err); err != nil {
		return false, err
	}
	if written || acted {
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

// decide makes the next plan, and its status the record's.
func (c *Controller) decide(ctx context.Context, entry *frameworkEntry, rec *record) (lifecycle.Plan, error) {
	logger := klog.FromContext(ctx)
	rec.left = nil // All that is still to be done is planned again.
	snapshot, err := c.gather(entry, rec)
	if err != nil {
		return lifecycle.Plan{}, fmt.Errorf("reading the cache: %w", err)
	}
	plan := lifecycle.Decide(snapshot, c.clock.Now(), c.entropy)
	if logger.V(5).Enabled() {
		logger.V(5).Info("Decided", "plan", plan.String())
	}
	rec.prune(snapshot.Pods)
	rec.outcomes = nil
	rec.status = plan.Status
	rec.decided, rec.generation = c.clock.Now(), entry.Generation
	rec.events = append(rec.events, plan.Events...)
	return plan, nil
}

// act runs actions of the last plan and keeps for the next one what came of them.
// It says whether anything did. What is left can be carried on with, unless there
// was an error.
func (c *Controller) act(ctx context.Context, entry *frameworkEntry, rec *record, actions []lifecycle.Action, turn *turn) (bool, error) {
	outcomes, left, err := c.apply(ctx, entry, rec, actions, turn)
	rec.outcomes = append(rec.outcomes, outcomes...)
	rec.left = left
	if err == nil {
		return len(outcomes) > 0, nil
	}
	rec.left = nil
	if rec.complaint != err.Error() {
		rec.complaint = err.Error()
		c.recorder.Event(reference(entry), corev1.EventTypeWarning, reasonActionFailed, err.Error())
	}
	return false, err
}
