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
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// pass is one sync of one Framework: it brings the Framework as far as it gets
// without waiting.
type pass struct {
	controller *Controller
	key        cache.ObjectName
	// entry is the Framework as the cache has it. Each round looks again.
	entry      *frameworkEntry
	memory     *memory
	pace       *pacing.Pace[cause]
	departures *departures
	turn       *turn
	// blocksChanged says that memory.blocks have changed since the last plan: another
	// round must tell the user.
	blocksChanged bool
}

// sync runs a pass over one Framework. An error is one of the whole pass: single
// requests that fail are tried again by themselves.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName, turn *turn) error {
	p, err := c.newPass(key, turn)
	if p == nil {
		return err
	}
	refusals := &p.pace.Refusals
	if wait := refusals.DueAlone(wholeSync).Sub(p.now()); wait > 0 {
		c.queue.AddAfter(key, wait)
		return nil
	}
	switch rested, err := p.run(ctx); {
	case err == nil && rested:
		refusals.Granted(wholeSync)
		return nil
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return nil
	default:
		refusals.Refused(wholeSync, p.now(), 0, c.entropy.Between)
		c.queue.AddAfter(key, refusals.DueAlone(wholeSync).Sub(p.now()))
		return err
	}
}

// newPass returns nil if the Framework is gone, or can't be worked with: that is
// told to the user, and there is nothing to try again until it changes.
func (c *Controller) newPass(key cache.ObjectName, turn *turn) (*pass, error) {
	entry, err := c.framework(key)
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", err)
	}
	if entry == nil {
		c.known.forget(key)
		c.metrics.undecodable.remove(key)
		return nil, nil
	}
	if known := c.metrics.undecodable.version(key); known != "" && known == entry.ResourceVersion {
		return nil, nil // It was looked at, and the user knows.
	}
	if entry.decodeError != nil {
		c.complain(key, entry, entry.decodeError)
		return nil, nil
	}
	known, err := c.known.of(key, entry)
	if err != nil {
		c.complain(key, entry, err)
		return nil, nil
	}
	c.metrics.undecodable.remove(key)
	return &pass{
		controller: c, key: key, entry: entry, turn: turn,
		memory: known.memory, pace: known.pace, departures: known.departures,
	}, nil
}

// complain tells the user of a Framework that can't be worked with.
func (c *Controller) complain(key cache.ObjectName, entry *frameworkEntry, err error) {
	c.metrics.undecodable.add(key, entry.ResourceVersion)
	c.events.Event(reference(entry), corev1.EventTypeWarning, reasonUndecodable, err.Error())
}

func (p *pass) now() time.Time { return p.controller.clock.Now() }

// spent says whether nothing new is to be begun.
func (p *pass) spent() bool {
	return pacing.Over(p.turn.begun, p.now(), p.turn.requests)
}

// run makes rounds until the Framework is at rest, or the turn is over. It says whether
// the Framework is at rest.
func (p *pass) run(ctx context.Context) (rested bool, err error) {
	c, syncs := p.controller, &p.pace.Syncs
	if wait := syncs.Due(p.memory.tasks()).Sub(p.now()); wait > 0 {
		c.queue.AddAfter(p.key, wait)
		return false, nil
	}
	unfinished := false
	defer func() { syncs.Ended(p.now(), unfinished) }()
	for ; !p.spent(); syncs.Round() {
		if syncs.Restless(p.memory.tasks()) {
			rounds := syncs.Rounds()
			syncs.Rested()
			return false, fmt.Errorf("not at rest after %d rounds", rounds)
		}
		same, err := p.refresh()
		if err != nil {
			return false, p.giveUp(err)
		}
		if !same {
			c.queue.Add(p.key)
			return false, nil
		}
		progressed, err := p.round(ctx)
		if err != nil {
			syncs.Rested()
			return false, p.giveUp(err)
		}
		if !progressed {
			syncs.Rested()
			return true, nil
		}
	}
	unfinished = true
	c.queue.Add(p.key)
	return false, nil
}

// giveUp ends the pass. A memory that was made from an old status goes with it.
func (p *pass) giveUp(err error) error {
	if errors.Is(err, errCacheBehind) {
		p.controller.known.reread(p.key)
	}
	return err
}

// refresh reads the Framework again, whose spec may have changed. It says whether it
// is still one to work with.
func (p *pass) refresh() (bool, error) {
	entry, err := p.controller.framework(p.key)
	if err != nil {
		return false, fmt.Errorf("reading the cache: %w", err)
	}
	if entry == nil || entry.UID != p.memory.uid || entry.decodeError != nil {
		return false, nil
	}
	p.entry = entry
	return true, p.checkEntry()
}

// round is gather, decide, persist, act, or goes on to act as the last one has
// decided. It says whether another round may find more to do at once. Once the turn
// is over, it begins no more actions. A write or an action that fails holds up nothing
// but what rests on it.
func (p *pass) round(ctx context.Context) (bool, error) {
	if p.memory.carriesOn(p.entry) && p.pace.Syncs.Fresh(p.now(), p.memory.tasks()) {
		_, err := p.act(ctx, p.memory.left)
		return true, err
	}
	plan, err := p.decide(ctx)
	if err != nil {
		return false, err
	}
	p.logHistory(plan.History)
	if plan.Persist == lifecycle.PersistNone {
		p.tell(ctx) // What they tell of is stored, or was over before it was.
	}
	written := false
	due := p.writeDue(plan)
	if plan.Persist != lifecycle.PersistNone && !due.After(p.now()) {
		if written, err = p.persist(ctx); err != nil {
			return false, err
		}
		if written && p.spent() {
			p.memory.left = plan.Actions
			return true, plan.Err
		}
		due = p.pace.Refusals.DueAlone(statusWrite)
	}
	p.noteMissing(plan.Actions)
	wanted, lookFirst := p.withoutEarlyLooks(plan.Actions)
	again, lookNext := p.looksAgain()
	wanted = append(wanted, again...)
	acted, err := p.act(ctx, wanted)
	if err := errors.Join(plan.Err, err); err != nil {
		return false, err
	}
	if written || acted {
		return true, nil
	}
	p.keepCauses(wanted, plan.Persist != lifecycle.PersistNone)
	if p.blocksChanged {
		return true, nil
	}
	if plan.Persist != lifecycle.PersistNone {
		p.wakeAt(due)
	}
	p.wakeAt(plan.WakeAt)
	p.wakeAt(p.nextTry(wanted))
	p.wakeAt(lookFirst)
	p.wakeAt(lookNext)
	return false, nil
}

// wakeAt asks for another sync at a time, but not at once: this one has found nothing to
// do. The zero time asks for none.
func (p *pass) wakeAt(at time.Time) {
	if !at.IsZero() {
		p.controller.queue.AddAfter(p.key, max(pacing.EventDelay, at.Sub(p.now())))
	}
}

// decide makes the next plan, and its status the memory's.
func (p *pass) decide(ctx context.Context) (lifecycle.Plan, error) {
	logger := klog.FromContext(ctx)
	m := p.memory
	m.left = nil // All that is still to be done is planned again.
	snapshot, err := p.gather()
	if err != nil {
		return lifecycle.Plan{}, fmt.Errorf("reading the cache: %w", err)
	}
	plan := lifecycle.Decide(snapshot, p.now(), p.controller.entropy)
	if logger.V(5).Enabled() {
		logger.V(5).Info("Decided", "plan", plan.String())
	}
	m.outcomes = nil
	m.status = plan.Status
	m.generation = p.entry.Generation
	m.events = append(m.events, plan.Events...)
	m.prune(snapshot.Pods)
	p.pace.Syncs.Decided(p.now())
	if plan.Persist == lifecycle.PersistNone {
		p.pace.Writes.Unchanged()
	} else {
		p.pace.Writes.Changed(p.now(), m.tasks(), p.controller.window)
	}
	return plan, nil
}

// writeDue is when the status is to be written, if it is: at once, after a while in
// which other changes may join it, or when a write that has failed may be tried again.
func (p *pass) writeDue(plan lifecycle.Plan) time.Time {
	if p.pace.Refusals.Refuses(statusWrite) {
		return p.pace.Refusals.DueAlone(statusWrite)
	}
	change := pacing.Change{
		Tasks:    p.memory.tasks(),
		Acting:   len(plan.Actions) > 0,
		Settled:  p.memory.settled(),
		Starting: plan.Status != nil && plan.Status.Tasks != nil && plan.Status.Tasks.Pending > 0,
	}
	switch plan.Persist {
	case lifecycle.PersistNow:
		change.Gates = pacing.GatesEverything
	case lifecycle.PersistSoon:
		change.Gates = pacing.GatesTasks
	}
	return p.pace.Writes.Due(change, p.controller.window)
}
