// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// pass is one sync of one owner. It does everything for the owner that can be done without waiting.
type pass[O Owner, S any] struct {
	owners *Owners[O, S]
	key    cache.ObjectName
	// entry is the owner from the cache. Each round looks again.
	entry      *entry[O]
	memory     *memory[O, S]
	pace       *pacing.Pace[cause]
	contents   map[ref]content
	departures *departures
	turn       *turn
	// blocksChanged means that memory.blocks have changed since the last plan, so that another round has to report
	// them.
	blocksChanged bool
	// over is the last plan's.
	over bool
}

// sync runs a pass over one owner. sync returns an error if the whole pass failed. Single requests that fail are tried
// again one by one.
func (o *Owners[O, S]) sync(ctx context.Context, key cache.ObjectName, turn *turn) error {
	p, err := o.newPass(key, turn)
	if p == nil {
		return err
	}
	refusals := &p.pace.Refusals
	if wait := refusals.DueAlone(wholeSync).Sub(p.now()); wait > 0 {
		o.addAfter(key, wait)
		return nil
	}
	switch rested, err := p.run(ctx); {
	case err == nil && rested:
		refusals.Granted(wholeSync)
		return p.letGo()
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return nil
	default:
		refusals.Refused(wholeSync, p.now(), 0, o.entropy.Between)
		o.addAfter(key, refusals.DueAlone(wholeSync).Sub(p.now()))
		return err
	}
}

// letGo forgets a finished owner, as soon as the cache shows the status.
func (p *pass[O, S]) letGo() error {
	o := p.owners
	if p.over && p.memory.forgettable(p.entry) {
		o.known.letGo(p.key)
		return nil
	}
	o.known.setOver(p.key, p.over)
	entry, err := o.cached(p.key)
	if p.over && entry != nil && entry != p.entry {
		o.add(p.key) // The cache has come to show it meanwhile.
	}
	return err
}

// newPass returns a pass over an owner. newPass returns nil if the owner is gone, must be left alone, can't be decoded,
// or is in a namespace that can't be read. If the owner can't be decoded, an event says so, and the next pass comes
// when the owner changes. All owners of a namespace are synced when the namespace can be read again.
func (o *Owners[O, S]) newPass(key cache.ObjectName, turn *turn) (*pass[O, S], error) {
	entry, err := o.cached(key)
	if err != nil {
		return nil, fmt.Errorf("reading the cache: %w", err)
	}
	if entry == nil || o.core.Ignores(entry.owner) {
		o.known.forget(key)
		o.fields.check(o.queued(key), nil)
		o.undecodable.remove(key)
		o.states.remove(key)
		return nil, nil
	}
	if o.unread.Has(key.Namespace) {
		o.known.leave(key)
		return nil, nil
	}
	if known := o.undecodable.version(key); known != "" && known == entry.owner.GetResourceVersion() {
		o.known.leave(key)
		return nil, nil // It was looked at, and the user knows.
	}
	if entry.decodeError != nil {
		o.known.leave(key)
		o.complain(entry, entry.decodeError)
		return nil, nil
	}
	if o.known.isNew(key) && o.rests(entry) {
		return nil, nil
	}
	known, err := o.known.of(key, entry, o.core)
	if err != nil {
		o.complain(entry, err)
		return nil, nil
	}
	o.undecodable.remove(key)
	o.states.set(key, o.core.State(known.memory.persisted))
	return &pass[O, S]{
		owners: o, key: key, entry: entry, turn: turn,
		memory: known.memory, pace: known.pace, contents: known.contents, departures: known.departures,
	}, nil
}

// rests reports whether there is nothing to do for an owner that the controller sees for the first time. If that may
// change with time, rests schedules the next sync.
func (o *Owners[O, S]) rests(entry *entry[O]) bool {
	if entry.owner.GetDeletionTimestamp() != nil {
		return false
	}
	stored, err := entry.storedStatus.json()
	if err != nil || len(stored) == 0 {
		return false
	}
	state, until, rests := o.core.Rests(entry.owner, stored, o.clock.Now())
	if rests {
		o.known.rest(entry.key())
		o.states.set(entry.key(), state)
		o.addAfter(entry.key(), max(pacing.EventDelay, until.Sub(o.clock.Now())))
	}
	return rests
}

// cached returns the owner from the cache, nil if there is none.
func (o *Owners[O, S]) cached(key cache.ObjectName) (*entry[O], error) {
	object, exists, err := o.informer.GetIndexer().GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	cached, ok := object.(*entry[O])
	if !ok {
		return nil, fmt.Errorf("the cache of the kind %s holds a %T", o.resource.Kind, object)
	}
	return cached, nil
}

// complain reports an owner that can't be decoded, by an event.
func (o *Owners[O, S]) complain(entry *entry[O], err error) {
	o.undecodable.add(entry.key(), entry.owner.GetResourceVersion())
	o.events.Event(o.reference(entry.owner), corev1.EventTypeWarning, ReasonUndecodable, err.Error())
}

func (p *pass[O, S]) now() time.Time { return p.owners.clock.Now() }

// size returns the number of Pods by which the cost of handling the status is measured. If this number differs between
// the current and the persisted status, the larger one counts.
func (p *pass[O, S]) size() int {
	return max(p.owners.core.Size(p.entry.owner, p.memory.status), p.owners.core.Size(p.entry.owner, p.memory.persisted))
}

// spent reports whether nothing new is to be begun.
func (p *pass[O, S]) spent() bool {
	return pacing.Over(p.turn.begun, p.now(), p.turn.requests)
}

// run makes rounds until the owner is at rest or the turn is over. rested reports that the owner is at rest.
func (p *pass[O, S]) run(ctx context.Context) (rested bool, err error) {
	o, syncs := p.owners, &p.pace.Syncs
	if wait := syncs.Due(p.size()).Sub(p.now()); wait > 0 {
		o.addAfter(p.key, wait)
		return false, nil
	}
	unfinished := false
	defer func() { syncs.Ended(p.now(), unfinished) }()
	for ; !p.spent(); syncs.Round() {
		if syncs.Restless(p.size()) {
			rounds := syncs.Rounds()
			syncs.Rested()
			return false, fmt.Errorf("not at rest after %d rounds", rounds)
		}
		same, err := p.refresh()
		if err != nil {
			return false, p.giveUp(err)
		}
		if !same {
			o.add(p.key)
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
	o.add(p.key)
	return false, nil
}

// giveUp ends the pass with an error. If the memory was made from an old status, the next sync reads the status again,
// and decides again on Pods that are gone.
func (p *pass[O, S]) giveUp(err error) error {
	if errors.Is(err, errCacheBehind) {
		for _, parting := range p.memory.parting {
			p.departures.add(parting)
		}
		p.owners.known.rereadStatus(p.key)
	}
	return err
}

// refresh takes the owner from the cache again, because its spec may have changed. refresh reports whether the owner
// can still be synced.
func (p *pass[O, S]) refresh() (bool, error) {
	entry, err := p.owners.cached(p.key)
	if err != nil {
		return false, fmt.Errorf("reading the cache: %w", err)
	}
	if entry == nil || entry.owner.GetUID() != p.memory.uid || entry.decodeError != nil || p.owners.core.Ignores(entry.owner) {
		return false, nil
	}
	p.entry = entry
	return true, p.checkEntry()
}

// round collects what is known, decides, writes the status and runs actions; or continues with the actions of the last
// decision. round reports whether another round may have more to do at once. Once the turn is over, no more actions are
// started. A write or an action that fails delays only the actions that depend on it.
func (p *pass[O, S]) round(ctx context.Context) (bool, error) {
	if p.memory.carriesOn(p.entry.owner) && p.pace.Syncs.Fresh(p.now(), p.size()) {
		_, err := p.act(ctx, p.memory.left)
		return true, err
	}
	p.lookUnwatched(ctx)
	next, err := p.decide(ctx)
	if err != nil {
		return false, err
	}
	if next.Before != nil {
		next.Before()
	}
	if next.Persist == plan.PersistNone {
		p.tell(ctx) // What they tell of is stored, or was over before it was.
	}
	statusWritten := false
	due := p.writeDue(next)
	if next.Persist != plan.PersistNone && !due.After(p.now()) {
		if statusWritten, err = p.persist(ctx); err != nil {
			return false, err
		}
		if statusWritten && p.spent() {
			p.memory.left = next.Actions
			return true, next.Err
		}
		due = p.pace.Refusals.DueAlone(statusWrite)
	}
	next.Actions = p.withoutParting(next.Actions)
	p.noteMissing(next.Actions)
	wanted, lookFirst := p.withoutEarlyLooks(next.Actions)
	again, lookNext := p.looksAgain()
	wanted = append(wanted, again...)
	acted, err := p.act(ctx, wanted)
	if err := errors.Join(next.Err, err); err != nil {
		return false, err
	}
	if statusWritten || acted || len(p.memory.parting) > 0 {
		return true, nil
	}
	p.keepCauses(wanted, next.Persist != plan.PersistNone)
	if p.blocksChanged {
		return true, nil
	}
	if next.Persist != plan.PersistNone {
		p.wakeAt(due)
	}
	p.wakeAt(next.WakeAt)
	p.wakeAt(p.nextTry(wanted))
	p.wakeAt(lookFirst)
	p.wakeAt(lookNext)
	if len(p.memory.ahead) > 0 {
		// Caches that were filled anew without the object have no event of its end.
		p.wakeAt(p.now().Add(pacing.LookInterval))
	}
	return false, nil
}

// withoutParting returns the actions on objects that are not gone.
func (p *pass[O, S]) withoutParting(actions []plan.Action) []plan.Action {
	if len(p.memory.parting) == 0 {
		return actions
	}
	return slices.DeleteFunc(slices.Clone(actions), func(action plan.Action) bool {
		return slices.ContainsFunc(p.memory.parting, func(parting departure) bool { return parting.uid == action.UID })
	})
}

// wakeAt schedules another sync for a time; zero schedules none. The sync does not come at once, even if the time has
// passed, because this sync has found nothing to do.
func (p *pass[O, S]) wakeAt(at time.Time) {
	if !at.IsZero() {
		p.owners.addAfter(p.key, max(pacing.EventDelay, at.Sub(p.now())))
	}
}

// decide makes the next plan, and puts the plan's status into the memory.
func (p *pass[O, S]) decide(ctx context.Context) (plan.Plan[S], error) {
	logger := klog.FromContext(ctx)
	m := p.memory
	m.left = nil // All that is still to be done is planned again.
	view, err := p.gather()
	if err != nil {
		return plan.Plan[S]{}, fmt.Errorf("reading the cache: %w", err)
	}
	view.UnknownFields, view.FieldsKnown = p.unknownFields()
	next, err := m.decider.Decide(view, p.now(), p.owners.entropy)
	if err != nil {
		return next, err
	}
	if logger.V(5).Enabled() {
		logger.V(5).Info("Decided", "plan", next.String())
	}
	m.outcomes = nil
	m.status = next.Status
	p.over = next.Over
	m.decidedOn = p.entry.owner
	m.events = newest(append(m.events, next.Events...), maxEvents)
	p.forgetSightings(view)
	p.prune(view)
	p.pace.Syncs.Decided(p.now())
	if next.Persist == plan.PersistNone {
		p.pace.Writes.Unchanged()
	} else {
		p.pace.Writes.Changed(p.now(), p.size(), p.owners.window)
	}
	return next, nil
}

// writeDue returns when to write the status; zero for never. That may be at once, after a delay in which further
// changes are collected, or when a failed write may be tried again.
func (p *pass[O, S]) writeDue(next plan.Plan[S]) time.Time {
	if p.pace.Refusals.Refuses(statusWrite) {
		return p.pace.Refusals.DueAlone(statusWrite)
	}
	change := pacing.Change{
		Tasks:    p.size(),
		Acting:   len(next.Actions) > 0,
		Settled:  next.Settled,
		Starting: next.Starting,
	}
	switch next.Persist {
	case plan.PersistNow:
		change.Gates = pacing.GatesEverything
	case plan.PersistSoon:
		change.Gates = pacing.GatesTasks
	}
	return p.pace.Writes.Due(change, p.owners.window)
}
