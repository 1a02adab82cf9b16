// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
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
		if !e.gangs.Waits(gang.Rank.Key, gang.UID, grace) {
			e.end(claim)
		}
	}
	for _, claim := range e.room.Expired(time.Now()) {
		barrier, starves := claim.(*room.Barrier)
		if e.end(claim) && starves {
			// Its gang has had no turn in which to notice.
			e.gangs.GiveUpHelp(claim.Gang().Rank.Key, barrier.Patience())
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
	e.gangs.SetKept(claim.Gang().Rank.Key, "")
	e.offer(claim)
}

// offer lets others try for the room of a claim. Ordinary Pods are told that a Pod
// has ended there, of which gangs need not hear.
func (e *engine) offer(claim room.Claim) {
	e.gangs.Offer(claim.Gang().Rank.Key)
	e.queue.OfferRoom(klog.FromContext(e.ctx), claim.Members()[0].Pod)
}

// keep keeps room for a gang.
func (e *engine) keep(claim room.Claim) {
	kept := news.Preempting
	if _, starves := claim.(*room.Barrier); starves {
		kept = news.Starving
		e.endOtherBarriers(claim.Gang().Rank.Key)
	}
	if left := e.room.Keep(claim); left != nil {
		e.offer(left)
	}
	e.gangs.SetKept(claim.Gang().Rank.Key, kept)
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
