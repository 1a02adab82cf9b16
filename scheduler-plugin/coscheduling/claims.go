// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// replacementGrace is how long room that was made by preemption is kept for a gang that has
// lost a member which waited: whoever made the member may make another.
const replacementGrace = 5 * time.Second

// keeper keeps room for gangs and gives it up, and tells whom that concerns.
type keeper struct {
	room  *room.Room
	gangs *gangs.Gangs
	queue *kube.Queue
	// tells records an event on a group.
	tells   func(ctx context.Context, group *dialect.Group, reason, message string)
	metrics *status.Metrics
}

// keepsAny says whether room is kept for any gang.
func (k *keeper) keepsAny() bool {
	return !k.room.IsEmpty()
}

// prune ends the claims of gangs that don't wait any more, and those that have
// lasted too long. Room for which others were evicted outlives a member that is replaced.
func (k *keeper) prune(ctx context.Context) {
	for _, claim := range k.room.InOrder() {
		if provided, ok := claim.(*room.Provision); ok {
			k.pruneProvision(ctx, provided)
			continue
		}
		gang, grace := claim.Gang(), time.Duration(0)
		if _, evicted := claim.(*room.Reservation); evicted {
			grace = replacementGrace
		}
		if !k.gangs.Waits(gang.Rank.Key, gang.UID, grace) {
			k.end(ctx, claim)
		}
	}
	for _, claim := range k.room.Expired(time.Now()) {
		if provided, ok := claim.(*room.Provision); ok {
			k.expireProvision(ctx, provided)
			continue
		}
		barrier, starves := claim.(*room.Barrier)
		if k.end(ctx, claim) && starves {
			// Its gang has had no turn in which to notice.
			k.gangs.GiveUpHelp(claim.Gang().Rank.Key, barrier.Patience())
		}
	}
}

// end ends a claim, and says whether it did: its gang may have a newer one by now.
func (k *keeper) end(ctx context.Context, claim room.Claim) bool {
	if !k.room.End(claim) {
		return false
	}
	k.ended(ctx, claim)
	return true
}

// drop ends a gang's claim, if it has one.
func (k *keeper) drop(ctx context.Context, key dialect.Key) {
	if claim := k.room.Drop(key); claim != nil {
		k.ended(ctx, claim)
	}
}

// ended makes known that a claim has ended, and lets others try for the room.
func (k *keeper) ended(ctx context.Context, claim room.Claim) {
	k.gangs.SetKept(claim.Gang().Rank.Key, "")
	k.offer(ctx, claim)
}

// offer lets others try for the room of a claim. Ordinary Pods are told that a Pod
// has ended there, of which gangs need not hear.
func (k *keeper) offer(ctx context.Context, claim room.Claim) {
	k.gangs.Offer(claim.Gang().Rank.Key)
	k.queue.OfferRoom(klog.FromContext(ctx), claim.Members()[0].Pod)
}

// become has the claim of a gang be this one, or none if it is nil. Own is the one that it had.
func (k *keeper) become(ctx context.Context, key dialect.Key, own, claim room.Claim) {
	switch {
	case claim == nil:
		k.drop(ctx, key)
	case claim != own:
		k.keep(ctx, claim)
	}
}

// keep keeps room for a gang.
func (k *keeper) keep(ctx context.Context, claim room.Claim) {
	kept := news.Preempting
	switch claim.(type) {
	case *room.Barrier:
		kept = news.Starving
		k.endOtherBarriers(ctx, claim.Gang().Rank.Key)
	case *room.Provision:
		kept = "" // the gang has its place
	}
	if left := k.room.Keep(claim); left != nil {
		k.offer(ctx, left)
	}
	k.gangs.SetKept(claim.Gang().Rank.Key, kept)
}

// endOtherBarriers ends those of gangs that had the right to be helped before this one: one
// gang at a time has it.
func (k *keeper) endOtherBarriers(ctx context.Context, gang dialect.Key) {
	for _, other := range k.room.InOrder() {
		if _, starves := other.(*room.Barrier); starves && other.Gang().Rank.Key != gang {
			k.end(ctx, other)
		}
	}
}
