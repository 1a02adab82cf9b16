// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// Room holds all reservations, at most one for each gang. The scheduling goroutine adds and removes reservations,
// Filter plugins read them, and any goroutine may end one that is over. Safe for concurrent use; the zero value is
// empty.
type Room struct {
	mu     sync.RWMutex
	byGang map[dialect.Key]*Reservation
	// ordered has the reservations by rank. byNode has, by node and by gang, the reservations with members on the node.
	ordered []*Reservation
	byNode  map[string]map[dialect.Key]*Reservation
}

// Of returns the reservation of a gang, nil if none.
func (r *Room) Of(gang dialect.Key) *Reservation {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byGang[gang]
}

// Keep stores a gang's reservation and replaces the earlier one. The result is the earlier one if others may use the
// change: it was on other nodes or of other amounts, the gang had a higher rank, or the gang needed the room notably sooner.
// Otherwise the result is nil.
func (r *Room) Keep(reservation *Reservation) (left *Reservation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.remove(reservation.Gang.Rank.Key)
	r.put(reservation)
	reservation.announced = reservation.From
	switch {
	case before == nil:
		return nil
	case !onSameNodes(before, reservation), !before.Takes.Equal(reservation.Takes),
		before.Gang.Rank.Compare(reservation.Gang.Rank) < 0, reservation.isLaterThan(before.announced):
		return before
	case !reservation.From.IsZero():
		reservation.announced = before.announced
	}
	return nil
}

// End ends a reservation, and reports whether it did. If the gang has another reservation by now, that one stays.
func (r *Room) End(reservation *Reservation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := reservation.Gang.Rank.Key
	if r.byGang[key] != reservation {
		return false
	}
	r.remove(key)
	return true
}

// put adds a reservation of a gang that has none. The caller holds the lock.
func (r *Room) put(reservation *Reservation) {
	if r.byGang == nil {
		r.byGang, r.byNode = make(map[dialect.Key]*Reservation), make(map[string]map[dialect.Key]*Reservation)
	}
	key := reservation.Gang.Rank.Key
	r.byGang[key] = reservation
	at, _ := slices.BinarySearchFunc(r.ordered, reservation, compareReservations)
	r.ordered = slices.Insert(r.ordered, at, reservation)
	for _, member := range reservation.Members {
		node := member.Pod.Spec.NodeName
		if r.byNode[node] == nil {
			r.byNode[node] = make(map[dialect.Key]*Reservation)
		}
		r.byNode[node][key] = reservation
	}
}

// remove removes and returns the reservation of a gang, nil if none. The caller holds the lock.
func (r *Room) remove(gang dialect.Key) *Reservation {
	reservation := r.byGang[gang]
	if reservation == nil {
		return nil
	}
	delete(r.byGang, gang)
	if at, found := slices.BinarySearchFunc(r.ordered, reservation, compareReservations); found {
		r.ordered = slices.Delete(r.ordered, at, at+1)
	}
	for _, member := range reservation.Members {
		node := member.Pod.Spec.NodeName
		if delete(r.byNode[node], gang); len(r.byNode[node]) == 0 {
			delete(r.byNode, node)
		}
	}
	return reservation
}

// compareReservations orders reservations by the ranks of their gangs. The order is total.
func compareReservations(a, b *Reservation) int {
	return a.Gang.Rank.Compare(b.Gang.Rank)
}

// IsEmpty reports whether there are no reservations.
func (r *Room) IsEmpty() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return len(r.byGang) == 0
}

// InOrder returns all reservations, in the order of their gangs in the queue.
func (r *Room) InOrder() []*Reservation {
	return r.inOrder(func(*Reservation) bool { return true })
}

// GangsOn returns the gangs for which room is reserved on a node, in any order.
func (r *Room) GangsOn(node string) []dialect.Key {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Collect(maps.Keys(r.byNode[node]))
}

// KeptFrom returns the reservations that a Pod or a gang has to leave alone, in the order of the queue.
func (r *Room) KeptFrom(t Taker) []*Reservation {
	return r.inOrder(func(of *Reservation) bool { return of.IsKeptFrom(t) })
}

// KeepsFrom reports whether a Pod or a gang has to leave any reservation alone.
func (r *Room) KeepsFrom(t Taker) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.ContainsFunc(r.ordered, func(of *Reservation) bool { return of.IsKeptFrom(t) })
}

// MayTake reports whether a node has room for a Pod's request beside the reservations that the Pod has to leave alone
// there. If the node has no such reservation, it returns true without looking at the node's room.
func (r *Room) MayTake(t Taker, request provision.Amounts, node fwk.NodeInfo) bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var reserved provision.Amounts
	for _, of := range r.byNode[node.Node().Name] {
		if of.IsKeptFrom(t) {
			reserved = reserved.Plus(of.Reserved(node))
		}
	}
	return reserved.IsZero() || Fits(request, reserved, node)
}

// ToCome sums up the room that is reserved for members to come of gangs other than the given one. inNamespace is the
// room for gangs of the same namespace. members is the number of members to come in all namespaces.
func (r *Room) ToCome(gang dialect.Key) (inNamespace provision.Amounts, members int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	inNamespace = make(provision.Amounts)
	for key, other := range r.byGang {
		if key == gang {
			continue
		}
		members += int(other.ToCome[corev1.ResourcePods])
		if key.Namespace == gang.Namespace {
			inNamespace.Add(other.ToCome)
		}
	}
	return inNamespace, members
}

// TakenAhead returns how much room is reserved for the gangs ahead of a rank.
func (r *Room) TakenAhead(rank queue.Rank) provision.Amounts {
	r.mu.RLock()
	defer r.mu.RUnlock()
	sum := make(provision.Amounts)
	for _, other := range r.ordered {
		if other.Gang.Rank.Key != rank.Key && other.Gang.Rank.Compare(rank) < 0 {
			sum.Add(other.Takes)
		}
	}
	return sum
}

// Beyond returns the reservations of gangs behind a rank that exceed a limit, in the order of the queue. Reservations
// count towards the limit in that order, so those ahead come first.
func (r *Room) Beyond(limit provision.Amounts, rank queue.Rank) (beyond []*Reservation) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	sum := make(provision.Amounts)
	for _, other := range r.ordered {
		with := other.Takes.Plus(sum)
		if other.Reason.IsCapped() && other.Gang.Rank.Compare(rank) > 0 && !with.Within(limit) {
			beyond = append(beyond, other)
			continue
		}
		sum = with
	}
	return beyond
}

func (r *Room) inOrder(wanted func(*Reservation) bool) []*Reservation {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var some []*Reservation
	for _, other := range r.ordered {
		if wanted(other) {
			some = append(some, other)
		}
	}
	return some
}
