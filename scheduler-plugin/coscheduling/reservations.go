// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/status"
)

// Reasons of events about a reservation for members to come.
const (
	// ReasonReservationExpired: the members did not come in time.
	ReasonReservationExpired = "ReservationExpired"
	// ReasonReservationLost: work that is ahead took the room, or its node is gone.
	ReasonReservationLost = "ReservationLost"
)

// result is how a reservation for members to come ended, for the metric.
type result string

const (
	filled  result = "filled"  // nothing is left to reserve: the members have come, or the group announces no more
	expired result = "expired" // the members did not come in time
	lost    result = "lost"    // others have the room
	gone    result = "gone"    // the group is gone, or no member runs
)

// keeper records and ends reservations, and reports that to the gangs and Pods concerned. The scheduling goroutine and
// waker use it at the same time.
type keeper struct {
	// mu is held while a reservation changes, until the gang and others know of it.
	mu     sync.Mutex
	room   *room.Room
	gangs  *gangs.Gangs
	reader gangs.Reader
	queue  *kube.PodQueue
	// tells records an event on a group.
	tells   func(ctx context.Context, group *dialect.Group, reason, message string)
	metrics *status.Metrics
}

// prune ends reservations that have lasted too long, or that their gang no longer needs.
func (k *keeper) prune(ctx context.Context) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	for _, r := range k.room.InOrder() {
		if r.Reason == room.MembersToCome {
			k.pruneToCome(ctx, r, now)
			continue
		}
		if now.After(r.End) || !k.reader.Waits(r.Gang.Rank.Key, r.Gang.UID, r.Grace()) {
			k.end(ctx, r)
		}
	}
}

// pruneToCome ends a reservation for members to come if the reservation has expired, the gang no longer runs, or all
// the members have come. Otherwise, pruneToCome reduces the reservation to what spec.provision still asks for.
func (k *keeper) pruneToCome(ctx context.Context, r *room.Reservation, now time.Time) {
	toCome, runs := k.reader.ToCome(r.Gang.Rank.Key, r.Gang.UID)
	switch {
	case !runs:
		k.endToCome(ctx, r, gone)
	case toCome.IsZero():
		k.endToCome(ctx, r, filled)
	case !now.Before(r.End):
		if k.endToCome(ctx, r, expired) {
			k.tell(ctx, r, ReasonReservationExpired,
				fmt.Sprintf("room for %s was kept for members to come, and is not any more: they did not come in time", r.Takes.WithoutPods()))
		}
	case !r.Takes.WithoutPods().Within(toCome):
		k.shrink(ctx, r, r.Within(toCome, nil), filled)
	}
}

// remain reduces a gang's reservation for members to come to what is left of it, and returns the result. Nodes may be
// gone, and work ahead in the queue may have taken room.
func (e *engine) remain(ctx context.Context, r *room.Reservation) *room.Reservation {
	if r == nil || r.Reason != room.MembersToCome || e.sched.UpdateSnapshot(klog.FromContext(ctx)) != nil {
		return r
	}
	return e.keeper.lose(ctx, r, r.Within(r.Takes, e.snapshot))
}

// lose replaces r by `left`, or ends r if `left` is nil, because others have the rest of the room. It returns the gang's
// reservation, which is another one if r has changed meanwhile.
func (k *keeper) lose(ctx context.Context, r, left *room.Reservation) *room.Reservation {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := k.room.Of(r.Gang.Rank.Key); now != r {
		return now
	}
	if left != r {
		k.tellLost(ctx, r, left)
	}
	return k.shrink(ctx, r, left, lost)
}

// shrink replaces r by `left`, or ends r if `left` is nil. It returns `left`.
func (k *keeper) shrink(ctx context.Context, r, left *room.Reservation, why result) *room.Reservation {
	switch {
	case left == nil:
		k.endToCome(ctx, r, why)
	case left != r:
		k.keep(ctx, left)
	}
	return left
}

func (k *keeper) tellLost(ctx context.Context, r, left *room.Reservation) {
	still := make(provision.Amounts)
	if left != nil {
		still = left.Takes.WithoutPods()
	}
	k.tell(ctx, r, ReasonReservationLost, fmt.Sprintf("of the room that was kept for members to come, %s has gone to others; kept is room for %s",
		r.Takes.WithoutPods().Less(still), still))
}

// tell records an event on the group of a reservation.
func (k *keeper) tell(ctx context.Context, r *room.Reservation, reason, message string) {
	k.tells(ctx, &dialect.Group{Key: r.Gang.Rank.Key, UID: r.Gang.UID}, reason, message)
}

// endToCome ends a reservation for members to come, and counts its result.
func (k *keeper) endToCome(ctx context.Context, r *room.Reservation, why result) bool {
	ended := k.end(ctx, r)
	if ended {
		k.metrics.Reservations.WithLabelValues(string(why)).Inc()
	}
	return ended
}

// end ends a reservation. It returns false if the gang has a newer one by now.
func (k *keeper) end(ctx context.Context, r *room.Reservation) bool {
	if !k.room.End(r) {
		return false
	}
	k.gangs.SetKept(r.Gang.Rank.Key, r.Gang.UID, "", nil)
	k.offer(ctx, r)
	return true
}

// offer wakes gangs and Pods that may use the room of an ended reservation. Ordinary Pods get an event as if a Pod had
// ended there.
func (k *keeper) offer(ctx context.Context, r *room.Reservation) {
	k.gangs.Offer(r.Gang.Rank.Key)
	k.queue.OfferRoom(klog.FromContext(ctx), r.Members[0].Pod)
}

// become replaces a gang's reservation `own` by r. Both may be nil. If `own` has changed meanwhile, what it has become is
// replaced.
func (k *keeper) become(ctx context.Context, own, r *room.Reservation) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case r == own:
	case r != nil:
		k.keep(ctx, r)
	default:
		if own = k.room.Of(own.Gang.Rank.Key); own == nil {
			return
		}
		if own.Reason == room.MembersToCome {
			k.endToCome(ctx, own, filled)
		} else {
			k.end(ctx, own)
		}
	}
}

// keep records a reservation.
func (k *keeper) keep(ctx context.Context, r *room.Reservation) {
	kept := news.Preempting
	switch r.Reason {
	case room.InTime:
		kept = news.Reserved
	case room.MembersToCome:
		kept = "" // the gang has its place
	case room.Preemption:
	}
	before := k.room.Of(r.Gang.Rank.Key)
	if left := k.room.Keep(r); left != nil {
		k.offer(ctx, left)
	} else if before != nil && r.From.After(before.From) {
		k.gangs.WakeWithin(r.From)
	}
	k.gangs.SetKept(r.Gang.Rank.Key, r.Gang.UID, kept, r.Nominees())
}

// limit ends the reservations of gangs behind r's gang that exceed the cap, `most`. Reservations count towards the cap
// in the order of the queue.
func (k *keeper) limit(ctx context.Context, r *room.Reservation, most provision.Amounts) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, other := range k.room.Beyond(most, r.Gang.Rank) {
		if other.Reason != room.MembersToCome {
			k.end(ctx, other)
		} else if k.endToCome(ctx, other, lost) {
			k.tellLost(ctx, other, nil)
		}
	}
}

// planWithinAnnounced plans a running gang with only those waiting members for which spec.provision asked when the gang
// started; see withinAnnounced. If these members have no place either, the result is `out`, the outcome of planning all
// waiting members.
func (e *engine) planWithinAnnounced(ctx context.Context, view *gangView, out place.Outcome) (place.Outcome, error) {
	some, ok := e.withinAnnounced(view)
	if !ok {
		return out, nil
	}
	beside, err := e.plan(ctx, &some, true)
	if err != nil || len(beside.Placements) > 0 {
		*view = some
		return beside, err
	}
	out.Shortfall.Need.Members = 0 // less than what is missing without the reservations may help
	return out, nil
}

// withinAnnounced returns a running gang with only those waiting members that its spec.provision announced at its
// start. Only these may be placed in room that is reserved in time for other gangs, because the other gangs may be
// waiting for this gang's end. The result is false if no waiting member was announced, or if there is no such
// reservation.
func (e *engine) withinAnnounced(view *gangView) (gangView, bool) {
	if view.Starts || view.ToCome.IsZero() || len(e.room.KeptFrom(e.takerOf(view, true))) == len(e.room.KeptFrom(e.takerOf(view, false))) {
		return gangView{}, false
	}
	some, left := *view, view.ToCome
	some.Waiting, some.ClassKeys = nil, nil
	for i, pod := range view.Waiting {
		if takes := provision.OfPod(pod).WithoutPods(); takes.Within(left) {
			some.Waiting, some.ClassKeys = append(some.Waiting, pod), append(some.ClassKeys, view.ClassKeys[i])
			left = left.Less(takes)
		}
	}
	return some, len(some.Waiting) > 0
}

// reserved returns how much of the nodes is kept free for gangs, by reason and resource; CPU in cores.
func reserved(of *room.Room) map[status.Kind]float64 {
	sum := make(map[status.Kind]float64)
	for _, r := range of.InOrder() {
		for name, amount := range r.Kept().WithoutPods() {
			unit := 1.0
			if name == corev1.ResourceCPU {
				unit = 1000
			}
			if amount > 0 {
				sum[status.Kind{Reason: string(r.Reason), Resource: string(name)}] += float64(amount) / unit
			}
		}
	}
	return sum
}
