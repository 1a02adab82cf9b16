// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
)

// seeker seeks room for a gang that found no place.
type seeker struct {
	gang    *Gang
	cluster *Cluster
	// found is what the plugins said when the gang found no place.
	found *survey
	// held are members of other gangs that are in the snapshot because of reservations.
	held sets.Set[types.UID]
	// standings are the other gangs, nil before the first search.
	standings map[dialect.Key]*gangs.Standing
	// until is when all searches of the cycle together have to end. If n searches are left, each gets one n-th of the
	// time left.
	until deadline
	left  int
	// wantsDevices reports that a member asks for devices.
	wantsDevices bool
	// mightPreempt reports that there is preemptible work, though not enough.
	mightPreempt bool
	// ends are when the work ends that the last search waited for.
	ends room.Ends
	// unlike reports that what kept the gang out may not keep out others of its shape.
	unlike bool
	// lacks is the number of members without a place even without all preemptible work: the least in any search. unsure
	// reports that in some search more than room was missing.
	lacks  int
	unsure bool
}

// space is room for a gang that is not free yet.
type space struct {
	// victims have to be evicted. Without victims, the room is free once Pods that are ending already are gone.
	victims []*corev1.Pod
	// awaited are all Pods that have to end first: the victims, and Pods that end in any case.
	awaited []fwk.PodInfo
	// places are the members on the nodes that they will get.
	places []*framework.PodInfo
}

// seek handles a gang that found no place: it has other Pods preempted if that helps, or reserves room if the gang is
// the first in the queue. It adds to the outcome what is to be done.
func (s *seeker) seek(ctx context.Context, out *Outcome) error {
	before := s.cluster.Own
	if before != nil && !before.Evicted {
		before = nil
	}
	longAgo := s.cluster.Now().Add(-brokenPatience)
	mayTakeOfBroken := s.gang.First && s.gang.MayPreempt && s.gang.Broken() && s.gang.Since.Before(longAgo)
	for _, may := range []bool{s.gang.MayPreempt, mayTakeOfBroken, mayPreemptOverrun(s), s.gang.First} {
		if may {
			s.left++
		}
	}
	if s.gang.MayPreempt {
		found, err := s.findSpace(ctx, outranked(s.gang.Rank), before != nil)
		if err != nil {
			return err
		}
		if found != nil && (len(found.victims) > 0 || before != nil || !s.gang.First) {
			return s.reserve(found, before, "of lower priority", out)
		}
	}
	if mayTakeOfBroken {
		// Gangs behind may also be short of members, and wait for this gang's room while this gang waits for theirs.
		found, err := s.findSpace(ctx, brokenBehind(s.gang.Rank, longAgo), false)
		if err != nil {
			return err
		}
		if found != nil && len(found.victims) > 0 {
			return s.reserve(found, before, "of gangs that are behind it and have lost members too", out)
		}
	}
	if mayPreemptOverrun(s) {
		found, err := s.findSpace(ctx, overrunWork(s), false)
		if err != nil {
			return err
		}
		if found != nil && len(found.victims) > 0 {
			return s.reserve(found, before, "that run longer than their estimates", out)
		}
	}
	if (s.gang.MayPreempt || s.gang.First) && s.wantsDevices {
		out.Shortfall.Message += "; devices that other Pods would give back are not counted on when Pods are to be preempted or resources are to be reserved"
	}
	if s.gang.First {
		reserved, err := s.reserveInTime(ctx)
		if err != nil {
			return err
		}
		switch {
		case reserved == nil:
		case !s.cluster.mayReserve(reserved.Takes):
			out.Shortfall.Message += fmt.Sprintf("; the gang is first in the queue, but no more than %d%% of the cluster may be reserved", s.cluster.MaxPercent)
		case !reserved.MayHold(s.gang.Group.Spec.Runtime.Expected, s.gang.Since):
			out.Shortfall.Message += "; nodes were idle for the gang for longer than it runs or had waited, so nothing is reserved until it has waited as long again"
			out.Helpless = s.cluster.Now().Sub(s.gang.Since)
		default:
			out.Reservation = reserved
			if reserved.From.After(s.cluster.Now()) {
				out.Again = reserved.From
			}
			out.Shortfall.Message += "; the gang is first in the queue, and resources are reserved for it"
			return nil
		}
		out.Helpless = max(out.Helpless, helpless)
	}
	if !s.cluster.ownToCome() {
		out.Reservation = nil
	}
	return nil
}

// brokenPatience is how long two gangs that have both lost members wait for each other's room.
const brokenPatience = 5 * time.Minute

// reserveInTime returns the gang's reservation in time from now on, nil for none.
func (s *seeker) reserveInTime(ctx context.Context) (*room.Reservation, error) {
	found, err := s.findSpace(ctx, ending(), true)
	if err != nil {
		return nil, err
	}
	now := s.cluster.Now()
	var reserved *room.Reservation
	if found != nil {
		reserved = room.NewInTime(room.Gang{Rank: s.gang.Rank, UID: s.gang.Group.UID}, found.places, s.ends, s.cluster.Snapshot, now)
	}
	if own := s.cluster.Own; own != nil && own.Reason == room.InTime {
		reserved = own.Renewed(reserved, s.ends, s.cluster.Snapshot, now)
	}
	return reserved, nil
}

// mayReserve reports whether an amount may be reserved in time for a gang beside the reservations ahead. A gang larger
// than the allowed share may reserve if nothing is reserved ahead; otherwise such a gang could never start.
func (c *Cluster) mayReserve(amounts provision.Amounts) bool {
	return c.MaxPercent > 0 && (c.Reserved.IsZero() || amounts.Plus(c.Reserved).Within(ShareOf(c.Snapshot, c.MaxPercent)))
}

// reserve writes the victims of a space, if any, and the reservation of the space into out. whose describes the victims
// in the message; before is the gang's earlier reservation, or nil.
func (s *seeker) reserve(found *space, before *room.Reservation, whose string, out *Outcome) error {
	places, err := steady(s.gang, found.places, s.cluster.Own)
	if err != nil {
		return err
	}
	now, gang, why := s.cluster.Now(), room.Gang{Rank: s.gang.Rank, UID: s.gang.Group.UID}, out.Shortfall
	end := s.cluster.Evictions.GoneBy(room.On(places, found.awaited), now)
	switch {
	case len(found.victims) > 0:
		if before != nil && before.End.After(end) {
			end = before.End
		}
		why.Message += fmt.Sprintf("; %d Pods %s are preempted for it", len(found.victims), whose)
	case before != nil:
		end = before.End
		why.Message += "; the Pods that were preempted for it are ending"
	default:
		why.Message += "; there will be room for all when Pods that are ending have gone"
	}
	out.Reservation = room.New(gang, room.Preemption, places, found.awaited, end)
	out.Reservation.Evicted = before != nil || len(found.victims) > 0
	out.Victims, out.Again = found.victims, end
	return nil
}

// findSpace searches the work that may be taken, by priority, for the least that has to end so that the gang's minimum
// has room. It returns nil if nothing suffices, or there is nothing to search. Pods that are ending count as gone; if
// there are only such Pods, findSpace searches only if evenWithout.
//
// The search packs members into the cluster without all work that may be taken, in each domain that a Required topology
// allows. The plugins then verify the choices, the least first. If they reject all, the plugins themselves are asked
// during the search.
func (s *seeker) findSpace(ctx context.Context, may prey, evenWithout bool) (found *space, err error) {
	until := s.until.share(max(1, s.left))
	s.left--
	pool, err := s.gather(may)
	if err == nil {
		s.ends = pool.ends
	}
	if err == nil && may.evictsNobody {
		for n := soonest; n < 8*len(pool.soon); n *= 8 {
			if found, err = byPacking(ctx, s, pool.first(n), until); found != nil || err != nil {
				return found, err
			}
		}
		for n := soonest; n < len(pool.soon); n *= 8 {
			if found, err = s.search(ctx, pool.first(n), until, evenWithout); found != nil || err != nil {
				return found, err
			}
		}
		pool = pool.first(len(pool.soon))
	}
	if err != nil {
		return nil, err
	}
	return s.search(ctx, pool, until, evenWithout)
}

// soonest is how many of the Pods that end by themselves are searched first.
const soonest = 4096

// search is findSpace within a pool.
func (s *seeker) search(ctx context.Context, pool *pool, until deadline, evenWithout bool) (found *space, err error) {
	s.mightPreempt = s.mightPreempt || len(pool.Units) > 0
	if len(pool.Units) == 0 && !pool.yielding && (!evenWithout || len(pool.leaving) == 0) {
		return nil, nil
	}
	restore, err := tryOn(s.cluster.Snapshot)
	if err != nil {
		return nil, err
	}
	defer restore(&err)
	search := newTrial(s.gang, s.cluster, pool, until)
	found, err = search.run(ctx)
	if errors.Is(err, errOverdue) && !s.until.isOver() {
		err = nil // there is time for the later searches
	}
	if found == nil && (search.asked || !isBlind(search.attempt.found.classes)) {
		s.unlike = true
	}
	if found == nil {
		s.learn(search)
	}
	return found, err
}

// tryOn begins to change a snapshot. The returned function restores the snapshot, and sets err if that fails and err is
// nil.
func tryOn(snapshot kube.Snapshot) (restore func(err *error), err error) {
	if err := snapshot.StartMutations(); err != nil {
		return nil, fmt.Errorf("trying the cluster without some Pods: %w", err)
	}
	return func(err *error) {
		if endErr := snapshot.EndMutations(); *err == nil && endErr != nil {
			*err = fmt.Errorf("restoring the snapshot: %w", endErr)
		}
	}, nil
}

// learn records how much room was missing in a search that found none.
func (s *seeker) learn(search *trial) {
	found := search.attempt.found
	if search.until.isOver() || search.asked || search.pool.spared || found.world == nil || !onlyNodesDecide(found.classes) {
		s.unsure = true
		return
	}
	short := planner.Explain(found.world, found.gang)
	if lacks := max(1, short.Needed-short.Placed); s.lacks == 0 || lacks < s.lacks {
		s.lacks = lacks
	}
}
