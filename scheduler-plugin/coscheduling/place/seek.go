// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/internal/times"
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
	// sight is what the gang sees of the Pods on nodes, nil before the first search.
	sight *sight
	// until is when all searches of the cycle together have to end. left is how many searches are left; each gets an
	// equal part of the time left.
	until deadline
	left  int
	// wantsDevices reports that a member asks for devices.
	wantsDevices bool
	// mightPreempt reports that there is preemptible work, though not enough.
	mightPreempt bool
	// unlike reports that other gangs of the same shape may find a place, although this gang found none.
	unlike bool
	// lacks is how many members would have no place even if all preemptible Pods were gone: the smallest number in any
	// search. unsure reports that in some search room was not the only thing that was missing.
	lacks  int
	unsure bool
	// again is when the gang may find more Pods to preempt, because the first of those that can't be evicted now may be evicted
	// then; zero if there are none.
	again time.Time
}

// space is room for a gang that is not free yet.
type space struct {
	// victims are the Pods to evict. If there are none, the room is free once Pods that are already ending are gone.
	victims []*corev1.Pod
	// awaited are all Pods that have to end first: the victims, and Pods that end in any case.
	awaited []fwk.PodInfo
	// places are the members on the nodes that they will get.
	places []*framework.PodInfo
}

// seek is called for a gang that found no place. It writes into `out` what is to be done: to preempt Pods, or to
// reserve room if the gang is the first in the queue.
func (s *seeker) seek(ctx context.Context, out *Outcome) error {
	before := s.cluster.Own
	if before != nil && !before.Evicted {
		before = nil
	}
	longAgo := s.cluster.Now().Add(-brokenPatience)
	mayTakeOfBroken := s.gang.First && s.gang.MayPreempt && s.gang.Broken() && s.gang.Since.Before(longAgo)
	mayPreempt := s.gang.MayPreempt
	if mayPreempt && before == nil {
		var err error
		if mayPreempt, err = s.outranksSome(); err != nil {
			return err
		}
	}
	ways := []struct {
		may         bool
		prey        func() prey
		evenWithout bool // also if all victims are ending already
		whose       string
	}{
		{mayPreempt, func() prey { return outranked(s.gang.Rank) }, before != nil, "of lower priority"},
		// Gangs behind may also be short of members, and wait for this gang's room while this gang waits for theirs.
		{mayTakeOfBroken, func() prey { return brokenBehind(s.gang.Rank, longAgo) }, false, "of gangs that are behind it and have lost members too"},
		{mayPreemptOverrun(s), func() prey { return overrunWork(s) }, false, "that run longer than their estimates"},
	}
	if s.gang.First {
		s.left++
	}
	for _, way := range ways {
		if way.may {
			s.left++
		}
	}
	for _, way := range ways {
		if !way.may {
			continue
		}
		found, err := s.findSpace(ctx, way.prey(), way.evenWithout)
		if err != nil {
			return err
		}
		if found != nil && (len(found.victims) > 0 || way.evenWithout || !s.gang.First) {
			return s.reserve(found, before, way.whose, out)
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
		own, now, runs := s.cluster.Own, s.cluster.Now(), time.Duration(0)
		if !s.cluster.End.IsZero() {
			runs = s.cluster.End.Sub(now)
		}
		begins := own == nil || own.Reason != room.InTime
		out.Helpless = Helpless
		switch {
		case reserved == nil:
		case !s.cluster.mayReserve(reserved.Takes):
			out.Shortfall.Message += fmt.Sprintf("; the gang is first in the queue, but no more than %d%% of the cluster may be reserved", s.cluster.MaxPercent)
		case begins && reserved.From.IsZero() && s.cluster.IdleOwed > 0:
			out.Helpless = min(s.cluster.IdleOwed, Helpless)
			out.Shortfall.Message += "; the gang is first in the queue, but nodes were kept idle for others, so without a known start nothing is reserved for it before " +
				now.Add(s.cluster.IdleOwed).UTC().Format(time.RFC3339)
		case !reserved.MayHold(runs, s.gang.Since, s.cluster.IdleOwed):
			out.Helpless = max(Helpless, now.Sub(s.gang.Since))
			out.Shortfall.Message += "; nodes were idle for this gang and others for as long as they may be, so nothing is reserved until it has waited as long again"
		default:
			out.Reservation, out.Again, out.Helpless = reserved, reserved.RenewAt(now), 0
			out.Shortfall.Message += "; the gang is first in the queue, and resources are reserved for it"
			return nil
		}
	}
	if !s.cluster.ownToCome() {
		out.Reservation = nil
	}
	return nil
}

// brokenPatience is how long two gangs that have both lost members may wait for each other's room. Then the gang ahead
// may preempt the other.
const brokenPatience = 5 * time.Minute

// reserveInTime returns the gang's reservation in time from now on, nil for none.
func (s *seeker) reserveInTime(ctx context.Context) (*room.Reservation, error) {
	until := s.nextDeadline()
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	pool, now, gang := s.sight.ending(s.cluster.Estimates), s.cluster.Now(), room.Gang{Rank: s.gang.Rank, UID: s.gang.Group.UID}
	own := s.cluster.Own
	if own != nil && own.Reason != room.InTime {
		own = nil
	}
	var stays *room.Reservation
	if own != nil {
		ends, err := s.endsOn(pool, own.Members)
		if err != nil {
			return nil, err
		}
		stays = own.Renewed(gang, s.firstToEnd(own, ends), ends, s.cluster.Snapshot, now)
	}
	has := stays
	if has != nil && !s.mayStay(own) {
		has = nil // any place is better; but what keeps the gang out may pass, so without another place the gang stays
	}
	found, err := s.findInTime(ctx, pool, has, until)
	if err != nil {
		return nil, err
	}
	reserved := stays
	if found != nil {
		ends, err := s.endsOn(pool, found.places)
		if err != nil {
			return nil, err
		}
		if other := room.NewInTime(gang, found.places, s.found.barring(found.awaited), ends, s.cluster.Snapshot, now); other != nil {
			reserved = room.Better(has, other, now)
		}
	}
	if reserved != nil && own != nil {
		reserved.Continue(own, s.cluster.Snapshot, now)
	}
	return reserved, nil
}

// barring returns those of some Pods on whose nodes plugins reject members, resources left aside.
func (s *survey) barring(pods []fwk.PodInfo) sets.Set[types.UID] {
	hidden, barring := s.hidden(), sets.New[types.UID]()
	for _, info := range pods {
		if pod := info.GetPod(); hidden.Has(pod.Spec.NodeName) {
			barring.Insert(pod.UID)
		}
	}
	return barring
}

// firstToEnd returns, for each reserved node on which plugins reject members, resources left aside, the Pod that ends first:
// one Pod at least has to end there. ends has the Pods that end.
func (s *seeker) firstToEnd(own *room.Reservation, ends room.Ends) sets.Set[types.UID] {
	barring := sets.New[types.UID]()
	for name := range s.found.hidden() {
		node, err := s.cluster.Snapshot.Get(name)
		if err != nil || !own.IsOn(name) {
			continue
		}
		var first types.UID
		for _, info := range node.GetPods() {
			uid := info.GetPod().UID
			if _, does := ends[uid]; does && (first == "" || times.Sooner(ends[uid], ends[first]).Equal(ends[uid])) {
				first = uid
			}
		}
		barring.Insert(first)
	}
	return barring
}

// mayStay reports whether no reserved node keeps out the member for which it is reserved, and all reserved nodes together
// may hold the gang. A node may have got a taint or lost a label, and the group may ask for another topology.
func (s *seeker) mayStay(own *room.Reservation) bool {
	world := s.found.world
	index := make(map[string]int)
	for n := range world.Nodes {
		if name := world.Nodes[n].Name; own.IsOn(name) {
			index[name] = n
		}
	}
	classOf := make(map[types.UID]*class)
	for _, class := range s.found.classes {
		for _, member := range class.members {
			classOf[member.UID] = class
		}
	}
	for _, member := range own.Members {
		name := member.Pod.Spec.NodeName
		if s.cluster.IsClosed != nil && s.cluster.IsClosed(name) {
			return false
		}
		if class, waits := classOf[member.Pod.UID]; waits && class.isBarred(index[name]) {
			return false
		}
	}
	return slices.ContainsFunc(planner.Candidates(world, s.found.gang), func(nodes []int) bool {
		in := 0
		for _, n := range nodes {
			if own.IsOn(world.Nodes[n].Name) {
				in++
			}
		}
		return in == len(index)
	})
}

// mayReserve reports whether the gang may get a reservation in time of these amounts, beside what is reserved for gangs
// ahead in the queue. A gang that alone exceeds the allowed share may get it if nothing is reserved for gangs ahead;
// otherwise it could never start.
func (c *Cluster) mayReserve(amounts provision.Amounts) bool {
	return c.MaxPercent > 0 && (c.Reserved.IsZero() || amounts.Plus(c.Reserved).Within(ShareOf(c.Snapshot, c.MaxPercent)))
}

// reserve writes the victims and the reservation of a space into `out`. `before` is the gang's earlier reservation, or
// nil. `whose` describes the victims in the message.
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

// findSpace searches for the smallest set of Pods, by priority, without which the gang's minimum has room. may says
// which Pods can be in the set. The result is nil if the gang has no room even without all of these Pods. Pods that are
// ending count as gone; if there are no others, findSpace searches only if evenWithout is set.
//
// The search first packs members by resources, as if all those Pods were gone, in each domain that a Required topology
// allows. The plugins then verify the results, the one with the smallest loss first. If they reject all results,
// findSpace searches again, and asks the plugins at each step.
func (s *seeker) findSpace(ctx context.Context, may prey, evenWithout bool) (*space, error) {
	until := s.nextDeadline()
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	pool, err := s.gather(may)
	if err != nil {
		return nil, err
	}
	s.again = times.Sooner(s.again, pool.again)
	return s.search(ctx, pool, until, evenWithout)
}

// look looks at the Pods on nodes, once for all searches.
func (s *seeker) look(ctx context.Context) (err error) {
	if s.sight == nil {
		s.sight, err = look(ctx, s.gang, s.found.classes, s.cluster)
	}
	return err
}

// nextDeadline returns when the next search of the cycle has to end.
func (s *seeker) nextDeadline() deadline {
	until := s.until.share(max(1, s.left))
	s.left--
	return until
}

// findInTime searches as findSpace does, among the Pods that end by themselves, for the earliest time at which the
// gang's minimum has room. `has` is the gang's present reservation, nil if it has none. If packing shows no place that is
// better, findInTime returns nil without asking the plugins.
//
// Packing is tried first, among the Pods that end first: as many as have to end until the gang fits, at least soonest, and
// more if the plugins reject the choices. Only nodes that have room for a member when these Pods have ended can help,
// which are few if the Pods are many.
func (s *seeker) findInTime(ctx context.Context, pool *pool, has *room.Reservation, until deadline) (*space, error) {
	if has != nil && !has.Takes.Equal(s.takes()) {
		has = nil // the gang asks for other amounts now
	}
	choices := maxChoices
	if len(pool.soon) <= fewEnding {
		choices = 1
		if s.found.hidesNodes(pool) {
			return s.searchInTime(ctx, pool, until)
		}
	}
	shadow := newShadow(s.found, pool)
	shortest, fits := shadow.shortest()
	for n := max(soonest, shortest); fits; n *= 8 {
		n = pool.through(n)
		shadow.advance(n)
		packing := newPacking(s, pool.first(n, shadow.holds), shadow.world, until)
		if has != nil && !packing.mayBeBetterThan(has) {
			return nil, nil
		}
		found, err := packing.verify(ctx, choices, until)
		if found != nil || err != nil {
			return found, err
		}
		if n >= len(pool.soon) {
			break
		}
	}
	return s.searchInTime(ctx, pool, until)
}

// searchInTime searches among the Pods that end first, then among more of them, and asks the plugins at each step.
func (s *seeker) searchInTime(ctx context.Context, pool *pool, until deadline) (*space, error) {
	for n := soonest; ; n *= 8 {
		found, err := s.search(ctx, pool.first(n, nil), until, true)
		if found != nil || err != nil || n >= len(pool.soon) {
			return found, err
		}
	}
}

// fewEnding is up to how many Pods that end by themselves a search costs little that asks the plugins at each step. Such a
// search may find a better place than packing, so packing counts only where it is sure to find the best.
const fewEnding = 512

// hidesNodes reports whether a Pod of a pool that ends by itself is on a node that is hidden.
func (s *survey) hidesNodes(pool *pool) bool {
	return slices.ContainsFunc(pool.soon, func(one soon) bool { return s.hides(pool.seen[one.pod].node) })
}

// hidden returns the names of the nodes that are hidden.
func (s *survey) hidden() sets.Set[string] {
	hidden := sets.New[string]()
	for n := range s.world.Nodes {
		if s.hides(n) {
			hidden.Insert(s.world.Nodes[n].Name)
		}
	}
	return hidden
}

// hides reports whether plugins reject a node only because of Pods there, resources left aside. Packing does not use such
// nodes.
func (s *survey) hides(node int) bool {
	return slices.ContainsFunc(s.classes, func(c *class) bool { return c.fitsLater(node) })
}

// takes returns what all waiting members together take.
func (s *seeker) takes() provision.Amounts {
	takes := make(provision.Amounts)
	for _, class := range s.found.classes {
		for range class.members {
			takes.Add(room.TakesOf(class.info))
		}
	}
	return takes
}

// soonest is how many of the Pods that end by themselves are searched first, at least.
const soonest = 4096

// search searches a pool for the smallest set of Pods without which the gang's minimum has room.
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

// tryOn begins changes of a snapshot that are to be undone. restore undoes them, and sets *err if that fails and *err
// is nil.
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
	if lacks := max(1, short.Needed-short.Most); s.lacks == 0 || lacks < s.lacks {
		s.lacks = lacks
	}
}
