// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/room"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/victims"
)

// maxTrials bounds how often the plugins are asked in a search for victims whose
// room is not a matter of resources alone. Each trial costs about as much as a
// plan.
const maxTrials = 48

// maxChoices bounds in how many domains the plugins are asked whether the least
// choice there holds, before they are asked in the search.
const maxChoices = 8

// space is room for a gang that is not there yet.
type space struct {
	// victims have to go for it. Without any, it is there when Pods that are
	// ending already have gone.
	victims []*corev1.Pod
	// awaited are all Pods that have to end for it: the victims, and those that end anyway.
	awaited []fwk.PodInfo
	// places are the members on the nodes where they have their place then.
	places []*framework.PodInfo
}

// seekRoom is for a gang that found no place: it preempts others if that helps,
// or keeps room free if the gang starves. It adds to why what it has done.
func (c *cycle) seekRoom(ctx context.Context, why *shortfall) (err error) {
	defer func() { c.sought = err == nil }()
	before, _ := c.room.Of(c.view.key).(*room.Reservation)
	if c.view.mayPreempt {
		found, err := c.findSpace(ctx, outranked(c.view.rank), before != nil)
		if err != nil {
			return err
		}
		if found != nil && (len(found.victims) > 0 || before != nil || !c.view.starving) {
			c.claim(ctx, found, before, "of lower priority", why)
			return nil
		}
	}
	if c.view.starving && c.view.mayPreempt && c.view.broken() {
		// Others may be short of members too, and wait for its room as it waits for theirs.
		found, err := c.findSpace(ctx, brokenBehind(c.view.rank, c.tracker.now().Add(-c.view.starvationAfter)), false)
		if err != nil {
			return err
		}
		if found != nil && len(found.victims) > 0 {
			c.claim(ctx, found, before, "of gangs that are behind it and have lost members too", why)
			return nil
		}
	}
	if c.view.starving {
		again, err := c.bar(ctx)
		if err != nil {
			return err
		}
		if !again.IsZero() {
			why.again = again
			why.message += fmt.Sprintf("; it has waited for more than %s, and room is held back for it", c.view.starvationAfter)
			return nil
		}
		why.helpless = c.view.starvationAfter
	}
	c.drop(c.view.key)
	return nil
}

// claim has the victims of a space evicted, if it has any, and keeps the space for the
// gang. Whose they are is for the message; before is what was reserved for the gang, or nil.
func (c *cycle) claim(ctx context.Context, found *space, before *room.Reservation, whose string, why *shortfall) {
	now, gang := c.tracker.now(), room.Gang{Rank: c.view.rank, UID: c.view.group.UID}
	var claim room.Claim
	switch {
	case len(found.victims) > 0:
		end := c.evictions.GoneBy(room.On(found.places, found.awaited), now)
		if before != nil {
			end = later(end, before.End())
		}
		claim = room.NewReservation(gang, found.places, found.awaited, end)
		why.message += fmt.Sprintf("; %d Pods %s are preempted for it", len(found.victims), whose)
	case before != nil:
		claim = room.NewReservation(gang, found.places, found.awaited, before.End())
		why.message += "; the Pods that were preempted for it are ending"
	default:
		claim = room.NewVacancy(gang, found.places, found.awaited, c.evictions.GoneBy(room.On(found.places, found.awaited), now))
		why.message += "; there will be room for all when Pods that are ending have gone"
	}
	c.keep(claim)
	if len(found.victims) > 0 {
		c.evict(ctx, c.view, found.victims)
	}
	// If the gang goes at this moment, the claim is pruned already.
	why.again = claim.End()
}

// findSpace searches the work that may be taken, by its priority, for the least
// that has to go so that the gang's minimum has room. It returns nil if there is
// none, or nothing to search; Pods that are ending count as gone, and are worth
// a search of their own only if evenWithout.
//
// The search is by packing, on the cluster as it would be without all that may
// be taken, in each domain that a Required topology allows. What it chooses is
// verified by the plugins, the least choice first. If they reject it, they are
// asked in the search themselves.
func (c *cycle) findSpace(ctx context.Context, may prey, evenWithout bool) (found *space, err error) {
	pool, err := c.gather(may)
	c.mightPreempt = c.mightPreempt || err == nil && len(pool.units) > 0
	if err != nil || len(pool.units) == 0 && !pool.yielding && (!evenWithout || len(pool.leaving) == 0) {
		return nil, err
	}
	if err := c.snapshot.StartMutations(); err != nil {
		return nil, fmt.Errorf("trying the cluster without some Pods: %w", err)
	}
	defer func() {
		if endErr := c.snapshot.EndMutations(); err == nil && endErr != nil {
			err = fmt.Errorf("restoring the snapshot: %w", endErr)
		}
	}()
	search := &trial{cycle: &cycle{engine: c.engine, view: c.view, deadline: c.deadline, rejections: make(map[string]int)}, pool: pool, left: maxTrials}
	found, err = search.run(ctx)
	if found == nil && (search.asked || !isBlind(search.classes)) {
		c.unlike = true
	}
	return found, err
}

// trial is a search for victims on a snapshot that is changed for it.
type trial struct {
	*cycle
	pool *pool
	// asked says that the plugins were asked about a choice of victims.
	asked bool
	gone  []bool // which of the pool's Pods are out of the snapshot
	left  int    // how often the plugins may still be asked
	err   error
	// places are those of the last time that the gang fitted.
	places []*framework.PodInfo
}

func (t *trial) run(ctx context.Context) (*space, error) {
	logger := klog.FromContext(ctx)
	t.gone = make([]bool, len(t.pool.pods))
	for _, leaving := range t.pool.leaving {
		if err := t.snapshot.RemovePod(logger, leaving.GetPod(), leaving.GetPod().Spec.NodeName); err != nil {
			return nil, fmt.Errorf("trying the cluster without %s: %w", klog.KObj(leaving.GetPod()), err)
		}
	}
	everything := make([]bool, len(t.pool.units))
	for i := range everything {
		everything[i] = true
	}
	if err := t.take(ctx, t.podsOf(everything)); err != nil {
		return nil, err
	}
	world, gang, err := t.world(ctx)
	if err != nil {
		return nil, err
	}
	choices := victims.Search(world, gang, t.pool.requests(t.classes, world, t.tracker.now()), t.pool.units)
	if len(choices) == 0 {
		return nil, nil
	}
	t.asked = true
	if !t.verifyOne(ctx, choices) && t.err == nil {
		chosen, ok := victims.Choose(t.pool.units, func(taken []bool) bool { return t.fits(ctx, taken) })
		if !ok {
			return nil, t.err
		}
		taken := make([]bool, len(t.pool.units))
		for _, u := range chosen {
			taken[u] = true
		}
		t.left = 1 // what was chosen may not be what was tried last
		if !t.fits(ctx, taken) {
			return nil, t.err
		}
	}
	if t.err != nil {
		return nil, t.err
	}
	found := &space{places: t.places, awaited: slices.Clone(t.pool.leaving)}
	for p, gone := range t.gone {
		if gone {
			found.victims = append(found.victims, t.pool.pods[p].GetPod())
			found.awaited = append(found.awaited, t.pool.pods[p])
		}
	}
	return found, nil
}

// verifyOne asks the plugins of the choices, one for each domain, the best ones
// only. It says whether one holds, and leaves that in the snapshot.
func (t *trial) verifyOne(ctx context.Context, choices []victims.Choice) bool {
	for _, choice := range choices[:min(len(choices), maxChoices)] {
		gone := make([]bool, len(t.pool.pods))
		for _, p := range choice.Pods {
			gone[p] = true
		}
		if t.fitsWithout(ctx, gone) {
			return true
		}
	}
	return false
}

// fits asks the plugins whether the gang fits without the units that are taken.
func (t *trial) fits(ctx context.Context, taken []bool) bool {
	return t.fitsWithout(ctx, t.podsOf(taken))
}

// fitsWithout asks the plugins whether the gang fits without some Pods. When it has
// asked too often it says no, which is on the safe side: more is taken than must
// be, never too little.
func (t *trial) fitsWithout(ctx context.Context, gone []bool) bool {
	if t.left--; t.left < 0 || t.err != nil {
		return false
	}
	if t.err = t.take(ctx, gone); t.err != nil {
		return false
	}
	why, err := t.plan(ctx)
	if t.err = err; err != nil || why != nil {
		return false
	}
	t.places = places(t.placements)
	t.undo(ctx)
	return true
}

// places are copies of members that name their nodes.
func places(placements []*kube.Placement) []*framework.PodInfo {
	infos := make([]*framework.PodInfo, len(placements))
	for i, p := range placements {
		infos[i] = p.Assumed
	}
	return infos
}

// podsOf says which of the pool's Pods are in the units that are taken.
func (t *trial) podsOf(taken []bool) []bool {
	pods := make([]bool, len(t.pool.pods))
	for u, taken := range taken {
		if taken {
			for _, p := range t.pool.units[u].Pods {
				pods[p] = true
			}
		}
	}
	return pods
}

// take brings the snapshot to where just these of the pool's Pods are gone.
func (t *trial) take(ctx context.Context, want []bool) error {
	logger := klog.FromContext(ctx)
	for p, gone := range want {
		if gone == t.gone[p] {
			continue
		}
		info := t.pool.pods[p]
		var err error
		if gone {
			err = t.snapshot.RemovePod(logger, info.GetPod(), info.GetPod().Spec.NodeName)
		} else {
			err = t.snapshot.AddPod(info, info.GetPod().Spec.NodeName)
		}
		if err != nil {
			return fmt.Errorf("trying the cluster without %s: %w", klog.KObj(info.GetPod()), err)
		}
		t.gone[p] = gone
	}
	return nil
}

// standing is a gang that has members placed.
type standing struct {
	group  *podGroup
	rank   line.Rank
	placed podgroup.Tally
	// waits says that the gang found no place for other members, and since since when.
	waits bool
	since time.Time
}

// whole says whether the gang has its minimum.
func (s *standing) whole() bool {
	return podgroup.Holds(&s.group.Spec, s.placed)
}

// standings are those of all gangs with members placed.
func (t *tracker) standings() map[types.NamespacedName]*standing {
	t.mu.RLock()
	defer t.mu.RUnlock()
	all := make(map[types.NamespacedName]*standing)
	for key, g := range t.gangs {
		if g.group != nil && g.placed.Total > 0 {
			all[key] = &standing{group: g.group, rank: t.rank(g), placed: g.placed.Plus(podgroup.Tally{}),
				waits: t.isRefused(g) && g.complete() && !t.line.Since(key).IsZero(), since: t.line.Since(key)}
		}
	}
	return all
}

// surplus are those of a gang's Pods, by index, that it can spare one by one:
// the youngest first, as far as its minima allow.
func (s *standing) surplus(pods []fwk.PodInfo, youngest []int) []int {
	var spare []int
	left := s.placed.Plus(podgroup.Tally{})
	for _, p := range youngest {
		role := podgroup.RoleOf(pods[p].GetPod())
		left.Add(role, -1)
		if podgroup.Holds(&s.group.Spec, left) {
			spare = append(spare, p)
		} else {
			left.Add(role, 1)
		}
	}
	return spare
}

// spares says whether the gang's minima hold without some of its Pods.
func (s *standing) spares(pods []fwk.PodInfo, some []int) bool {
	left := s.placed.Plus(podgroup.Tally{})
	for _, p := range some {
		left.Add(podgroup.RoleOf(pods[p].GetPod()), -1)
	}
	return podgroup.Holds(&s.group.Spec, left)
}

// byYouth orders Pods, by index, the one that has run the shortest first.
func byYouth(pods []fwk.PodInfo, indexes []int, now time.Time) {
	slices.SortFunc(indexes, func(a, b int) int {
		return cmp.Or(
			cmp.Compare(ran(pods[a].GetPod(), now), ran(pods[b].GetPod(), now)),
			-compareNames(pods[a].GetPod().Name, pods[b].GetPod().Name),
		)
	})
}

// ran is how long a Pod has run.
func ran(pod *corev1.Pod, now time.Time) time.Duration {
	if pod.Status.StartTime == nil {
		return 0
	}
	return max(0, now.Sub(pod.Status.StartTime.Time))
}

// requests are the pool's Pods as the planner counts them.
func (p *pool) requests(classes []*class, world *planner.World, now time.Time) []victims.Pod {
	index := make(map[string]int, len(world.Nodes))
	for n := range world.Nodes {
		index[world.Nodes[n].Name] = n
	}
	resources := newResources(classes)
	pods := make([]victims.Pod, len(p.pods))
	for i, info := range p.pods {
		pods[i] = victims.Pod{
			Node:    index[info.GetPod().Spec.NodeName],
			Request: resources.quantities(info.CalculateResource().Resource, 1),
			Lost:    ran(info.GetPod(), now),
		}
	}
	return pods
}
