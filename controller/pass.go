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
	entry  *frameworkEntry
	memory *memory
	pace   *pacing.Pace
	turn   *turn
}

// sync runs a pass over one Framework.
func (c *Controller) sync(ctx context.Context, key cache.ObjectName, turn *turn) error {
	p, err := c.newPass(key, turn)
	if p == nil {
		return err
	}
	return p.run(ctx)
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
	if entry.decodeError != nil {
		c.complain(key, entry, reasonUndecodable, entry.decodeError)
		return nil, nil
	}
	known, err := c.known.of(key, entry)
	if err != nil {
		c.complain(key, entry, reasonUndecodable, err)
		return nil, nil
	}
	c.metrics.undecodable.remove(key)
	return &pass{controller: c, key: key, entry: entry, memory: known.memory, pace: known.pace, turn: turn}, nil
}

// complain tells the user of a Framework that can't be worked with.
func (c *Controller) complain(key cache.ObjectName, entry *frameworkEntry, reason string, err error) {
	c.metrics.undecodable.add(key)
	c.events.Event(reference(entry), corev1.EventTypeWarning, reason, err.Error())
}

func (p *pass) now() time.Time { return p.controller.clock.Now() }

// spent says whether nothing new is to be begun.
func (p *pass) spent() bool {
	return p.turn.Over(p.now(), p.memory.tasks())
}

// run makes rounds until the Framework is at rest, or the turn is over.
func (p *pass) run(ctx context.Context) error {
	c, syncs := p.controller, &p.pace.Syncs
	if wait := syncs.Due(p.memory.tasks()).Sub(p.now()); wait > 0 {
		c.queue.AddAfter(p.key, wait)
		return nil
	}
	unfinished := false
	defer func() { syncs.Ended(p.now(), unfinished) }()
	for ; !p.spent(); syncs.Round() {
		if syncs.Restless(p.memory.tasks()) {
			rounds := syncs.Rounds()
			syncs.Rested()
			return fmt.Errorf("not at rest after %d rounds", rounds)
		}
		same, err := p.look()
		if err != nil {
			return err
		}
		if !same {
			c.queue.Add(p.key)
			return nil
		}
		progressed, err := p.round(ctx)
		if errors.Is(err, errCacheBehind) {
			// Nothing was written from this memory, so nothing is lost with it.
			c.known.forget(p.key)
		}
		if err != nil || !progressed {
			syncs.Rested()
			return err
		}
	}
	unfinished = true
	c.queue.Add(p.key)
	return nil
}

// look reads the Framework again, whose spec may have changed. It says whether it
// is still one to work with.
func (p *pass) look() (bool, error) {
	entry, err := p.controller.framework(p.key)
	if err != nil {
		return false, fmt.Errorf("reading the cache: %w", err)
	}
	if entry == nil || entry.UID != p.memory.uid || entry.decodeError != nil {
		return false, nil
	}
	p.entry = entry
	return true, nil
}

// round is gather, decide, persist, act, or goes on to act as the last one has
// decided. It says whether another round may find more to do at once. Once the turn
// is over, it begins no more actions.
func (p *pass) round(ctx context.Context) (bool, error) {
	c := p.controller
	if p.memory.carriesOn(p.entry) && p.pace.Syncs.Fresh(p.now(), p.memory.tasks()) {
		_, err := p.act(ctx, p.memory.left)
		return true, err
	}
	plan, err := p.decide(ctx)
	if err != nil {
		return false, err
	}
	c.logHistory(plan.History)
	wait := p.writeIn(plan)
	written := wait == 0
	if written {
		if err := p.persist(ctx); err != nil {
			return false, err
		}
		if p.spent() {
			p.memory.left = plan.Actions
			return true, plan.Err
		}
	}
	acted, err := p.act(ctx, plan.Actions)
	if err := errors.Join(plan.Err, err); err != nil {
		return false, err
	}
	if written || acted {
		return true, nil
	}
	if wait > 0 {
		c.queue.AddAfter(p.key, wait)
	}
	if !plan.WakeAt.IsZero() {
		c.queue.AddAfter(p.key, max(0, plan.WakeAt.Sub(p.now())))
	}
	return false, nil
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
	m.prune(snapshot.Pods)
	m.outcomes = nil
	m.status = plan.Status
	m.generation = p.entry.Generation
	m.events = append(m.events, plan.Events...)
	p.pace.Syncs.Decided(p.now())
	if plan.Persist == lifecycle.PersistNone {
		p.pace.Writes.Unchanged()
	} else {
		p.pace.Writes.Changed(p.now(), m.tasks(), p.controller.window)
	}
	return plan, nil
}

// never is the wait for a write that is not needed.
const never time.Duration = -1

// writeIn is how long the write of the status may wait: not at all, never, or a
// while in which other changes may join it.
func (p *pass) writeIn(plan lifecycle.Plan) time.Duration {
	change := pacing.Change{
		Tasks:    p.memory.tasks(),
		Acting:   len(plan.Actions) > 0,
		Settled:  p.memory.settled(),
		Starting: plan.Status != nil && plan.Status.Tasks != nil && plan.Status.Tasks.Pending > 0,
	}
	switch plan.Persist {
	case lifecycle.PersistNone:
		return never
	case lifecycle.PersistNow:
		change.Gates = pacing.GatesEverything
	case lifecycle.PersistSoon:
		change.Gates = pacing.GatesTasks
	}
	return max(0, p.pace.Writes.Due(change, p.controller.window).Sub(p.now()))
}

// act runs actions of the last plan and keeps for the next one what came of them.
// It says whether anything did. What is left can be carried on with, unless there
// was an error.
func (p *pass) act(ctx context.Context, actions []lifecycle.Action) (bool, error) {
	m := p.memory
	outcomes, left, err := p.apply(ctx, actions)
	m.outcomes = append(m.outcomes, outcomes...)
	m.left = left
	if err == nil {
		return len(outcomes) > 0, nil
	}
	m.left = nil
	if m.complaint != err.Error() {
		m.complaint = err.Error()
		p.controller.events.Event(reference(p.entry), corev1.EventTypeWarning, reasonActionFailed, err.Error())
	}
	return false, err
}
