// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// replacementGrace is how long room that was made by preemption is kept for a gang that has
// lost a member which waited: whoever made the member may make another.
const replacementGrace = 5 * time.Second

// prune ends the claims of gangs that don't wait any more, and those that have
// lasted too long. Room for which others were evicted outlives a member that is replaced.
func (e *engine) prune() {
	for _, claim := range e.room.InOrder() {
		gang, grace := claim.Gang(), time.Duration(0)
		if _, evicted := claim.(*room.Reservation); evicted {
			grace = replacementGrace
		}
		if !e.tracker.waits(gang.Rank.Key, gang.UID, grace) {
			e.end(claim)
		}
	}
	for _, claim := range e.room.Expired(e.tracker.now()) {
		barrier, starves := claim.(*room.Barrier)
		if e.end(claim) && starves {
			// Its gang has had no turn in which to notice.
			e.tracker.giveUpHelp(claim.Gang().Rank.Key, barrier.Patience())
		}
	}
}

// end ends a claim, and says whether it did: its gang may have a newer one by now.
func (e *engine) end(claim room.Claim) bool {
	if !e.room.End(claim) {
		return false
	}
	e.ended(claim)
	return true
}

// drop ends a gang's claim, if it has one.
func (e *engine) drop(key types.NamespacedName) {
	if claim := e.room.Drop(key); claim != nil {
		e.ended(claim)
	}
}

// ended makes known that a claim has ended, and lets others try for the room.
func (e *engine) ended(claim room.Claim) {
	e.tracker.setHeld(claim.Gang().Rank.Key, heldNot)
	e.reporter.Report(claim.Gang().Rank.Key, 0) // its members are nominated no more
	e.offer(claim)
}

// offer lets others try for the room of a claim. Ordinary Pods are told that a Pod
// has ended there, of which gangs need not hear.
func (e *engine) offer(claim room.Claim) {
	e.tracker.offer(claim.Gang().Rank.Key)
	e.queue.OfferRoom(klog.FromContext(e.ctx), claim.Members()[0].Pod)
}

// keep keeps room for a gang.
func (e *engine) keep(claim room.Claim) {
	if _, starves := claim.(*room.Barrier); starves {
		e.endOtherBarriers(claim.Gang().Rank.Key)
	}
	if left := e.room.Keep(claim); left != nil {
		e.offer(left)
	}
	kind := heldForPreemption
	if _, starves := claim.(*room.Barrier); starves {
		kind = heldForStarving
	}
	e.tracker.setHeld(claim.Gang().Rank.Key, kind)
}

// endOtherBarriers ends those of gangs that had the right to be helped before this one: one
// gang at a time has it.
func (e *engine) endOtherBarriers(gang types.NamespacedName) {
	for _, other := range e.room.InOrder() {
		if _, starves := other.(*room.Barrier); starves && other.Gang().Rank.Key != gang {
			e.end(other)
		}
	}
}

// held says whether and why room is held for a gang.
type held int

const (
	heldNot held = iota
	heldForPreemption
	heldForStarving
)

// setHeld records whether room is held for a gang.
func (t *tracker) setHeld(key types.NamespacedName, h held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if g := t.gangs[key]; g != nil {
		g.held = h
	}
}

// waits says whether a gang still lacks its minimum. For members above the minimum no
// room is held: it may have been lowered since.
// One that was complete less than grace ago counts as if it were.
func (t *tracker) waits(key types.NamespacedName, uid types.UID, grace time.Duration) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := t.gangs[key]
	return g != nil && g.group != nil && g.group.UID == uid && g.lacksMinimum() &&
		(g.complete() || t.now().Sub(g.brokenUp) < grace)
}

// giveUpHelp has a gang give up its right to be helped for a while.
func (t *tracker) giveUpHelp(key types.NamespacedName, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.GiveUpHelp(key, d, t.now())
	t.stir()
}

// offer tells the line that a gang has given up room.
func (t *tracker) offer(by types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.line.Happened(line.Event{Kind: line.Anything, By: by}, t.now())
	t.stir()
}
