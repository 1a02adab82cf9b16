// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// Outcome is the result of a gang's scheduling cycle, and what is to be done.
type Outcome struct {
	// Placements are members on nodes, in the order in which they were placed. With these members the gang has its
	// minimum. The Reserve plugins have run for them, so a caller that does not assume the Placements has to call
	// kube.UndoReserve. If Placements is empty, the gang keeps waiting.
	Placements []*kube.Placement
	// Shortfall is why the gang, or the part of the gang above the minimum, has no place; nil if all members have one.
	Shortfall *Shortfall
	// Victims are to be evicted for the gang.
	Victims []*corev1.Pod
	// Reservation is the gang's reservation from now on: the one it had, a new one, or nil for none.
	Reservation *room.Reservation
	// Again is when to plan the gang again even if nothing happens; zero for never.
	Again time.Time
	// Helpless is how long the gang loses its right to a reservation, because no room can be reserved for the gang. 0:
	// the gang keeps the right.
	Helpless time.Duration
}

// Unplaced returns the members in `waiting` that have no placement.
func (o *Outcome) Unplaced(waiting []*corev1.Pod) []*corev1.Pod {
	placed := make(map[types.UID]bool, len(o.Placements))
	for _, p := range o.Placements {
		placed[p.Pod.UID] = true
	}
	return slices.DeleteFunc(slices.Clone(waiting), func(pod *corev1.Pod) bool { return placed[pod.UID] })
}

// Helpless is how long a gang loses its right to a reservation when no reservation is possible.
const Helpless = 5 * time.Minute

// Shortfall is why members have no place.
type Shortfall struct {
	Message string
	// Needed is how many members the minimum lacks, and Room is how many of these had a place. Packed otherwise, up to Most
	// might have had one. Needed is 0 if the minimum has its place, or if something other than room is missing.
	Needed, Room, Most int
	// Need is what must happen before the members can be placed.
	Need queue.Need
	// Unready reports that room is not the problem: members may not be scheduled yet.
	Unready bool
	// Certain reports that the planner found no plan at all. It is false if there were plans that plugins rejected.
	Certain bool
	// Overdue reports that the cycle was given up because it took too long.
	Overdue bool
	// Unfinished reports that not all plans were verified. The next cycle continues with the others.
	Unfinished bool
	// OfOthers reports that other gangs of the same Shape have no place either.
	OfOthers bool
}

// Unsought returns the outcome for a gang that was not planned because something other than room is missing. `own` is
// the gang's reservation, or nil. A gang that is first in the queue gives up its right and its reservation for a while,
// so as not to block others.
func Unsought(gang *Gang, own *room.Reservation, why Shortfall) Outcome {
	out := refused(gang, own, why)
	if gang.First {
		out.Helpless = Helpless
		if own != nil && own.Reason != room.MembersToCome {
			out.Reservation = nil
		}
	}
	return out
}

// Postponed returns the outcome for a gang that is planned again soon, because its group, its members or their claims
// are changing. The gang keeps its reservation, and its right to one.
func Postponed(gang *Gang, own *room.Reservation, message string) Outcome {
	return refused(gang, own, Shortfall{Unready: true, Message: message})
}

// refused returns the outcome for a gang that has no place and keeps its reservation.
func refused(gang *Gang, own *room.Reservation, why Shortfall) Outcome {
	// A member with affinity or spread may fit once another Pod is placed.
	why.Need.RegardsOthers = slices.ContainsFunc(gang.Waiting, func(pod *corev1.Pod) bool { return !regardOf(pod).isMonotone() })
	return Outcome{Shortfall: &why, Reservation: own}
}

// placedOutcome returns the outcome for a gang with enough placed members for its minimum. The outcome has a Shortfall
// if other members found no place.
func placedOutcome(gang *Gang, placed *verification) Outcome {
	out := Outcome{Placements: placed.placements}
	if rest := len(gang.Waiting) - len(placed.placements); rest > 0 {
		out = refused(gang, nil, Shortfall{Message: explainRestAbove(placed, rest)})
		out.Placements = placed.placements
	}
	return out
}
