// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// Outcome is what has come of a gang's turn, and what is to be done.
type Outcome struct {
	// Placements are members on nodes, in the order in which they were placed. With them the
	// gang has its minimum. What they need is set aside: the Reserve plugins have run.
	// Whoever does not assume them has to undo that. Without any, the gang waits on.
	Placements []*kube.Placement
	// Shortfall is why the gang, or the rest of it above the minimum, has no place; nil if
	// all of it has.
	Shortfall *Shortfall
	// Victims are to be evicted for the gang.
	Victims []*corev1.Pod
	// Reservation is what the gang is to have from now on: the one it had, another one, or nil for none.
	Reservation *room.Reservation
	// Again is when to plan the gang again even if nothing happens; zero for never.
	Again time.Time
	// Helpless is for how long the gang gives up its right to be helped, because no room
	// can be reserved for it. 0: it keeps it.
	Helpless time.Duration
}

// helpless is for how long a gang gives up its right to be helped which can't be.
const helpless = 5 * time.Minute

// Shortfall is why members have no place.
type Shortfall struct {
	Message string
	// Needed is how many members the minimum lacks, and Room how many of them had a place.
	// Needed is 0 if it is not the minimum that has no place, or not room that is missing.
	Needed, Room int
	// Need is what must happen before they can be placed.
	Need queue.Need
	// Unready says that it is not room that is missing: members may not be scheduled yet.
	Unready bool
	// Certain says that there was no plan at all, rather than plans that plugins
	// rejected.
	Certain bool
	// Overdue says that the cycle was given up because it took too long.
	Overdue bool
	// Unfinished says that not all plans were verified. The next cycle goes on with the others.
	Unfinished bool
	// OfOthers says that gangs of the same Shape have no place either.
	OfOthers bool
}

// Unsought is the outcome for a gang that has no place for another reason than that there
// is no room, so that none was sought for it. Own is the reservation that it has, or nil. If it
// is the first one, it must not keep others from being helped meanwhile, nor their room.
func Unsought(gang *Gang, own *room.Reservation, why Shortfall) Outcome {
	out := refused(gang, own, why)
	if gang.First {
		out.Helpless = helpless
		if own != nil && own.Reason != room.MembersToCome {
			out.Reservation = nil
		}
	}
	return out
}

// refused is the outcome for a gang that has no place, and keeps its reservation.
func refused(gang *Gang, own *room.Reservation, why Shortfall) Outcome {
	// A Pod that is placed may make room.
	why.Need.RegardsOthers = slices.ContainsFunc(gang.Waiting, func(pod *corev1.Pod) bool { return !regardOf(pod).isMonotone() })
	return Outcome{Shortfall: &why, Reservation: own}
}

// placedOutcome is the outcome for a gang that has its minimum with what is placed.
func placedOutcome(gang *Gang, placed *verification) Outcome {
	out := Outcome{Placements: placed.placements}
	if rest := len(gang.Waiting) - len(placed.placements); rest > 0 {
		out = refused(gang, nil, Shortfall{Message: explainRestAbove(placed, rest)})
		out.Placements = placed.placements
	}
	return out
}
