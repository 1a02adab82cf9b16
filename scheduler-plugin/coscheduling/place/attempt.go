// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxPlans is the largest number of plans that one attempt verifies; see Tried. Plans differ in their topology domain.
// Plugins reject a plan if members constrain each other by affinity or spread, and each plan costs about as much as
// scheduling the members one by one.
const maxPlans = 32

// attempt plans a gang on the snapshot as given, and verifies the plans.
type attempt struct {
	gang    *Gang
	cluster *Cluster
	filters *filters
	// until is when the attempt has to end.
	until deadline
	// found is the result of the last survey.
	found *survey
	// shares reports that attempts may share a pass: what the plugins said of the nodes (pass.go). recalled is the pass
	// of an earlier attempt that this one uses, nil if none.
	shares   bool
	recalled *pass
	// unsteady are the nodes that differ from gang to gang, by name; see pass.renew.
	unsteady sets.Set[string]
	// lasting says which nodes are in use for as long as the gang runs, nil if unknown or not asked.
	lasting []bool
	// vacated are the names of the nodes that the gang uses first: Pods on them end by the time for which the gang is planned. nil: none.
	vacated sets.Set[string]
	// complete makes the attempt place members one by one where that is better, or where no plan holds. A search for
	// victims, which makes many attempts, leaves complete false.
	complete bool
}

// newAttempt returns an attempt. `said` holds the reasons for which plugins have rejected members of the gang already.
func newAttempt(gang *Gang, cluster *Cluster, said rejections) *attempt {
	return &attempt{gang: gang, cluster: cluster, filters: &filters{name: cluster.Plugin, rejections: said}, until: cluster.deadline(), found: &survey{}}
}

// plans yields the planner's plans. First come plans with as many members as fit, then plans with only the members that
// the minima need: if members constrain each other, the others may take the places of needed members. If no plan of the
// first sort exists, plans does not look for the second.
func (a *attempt) plans() iter.Seq[planner.Plan] {
	return func(yield func(planner.Plan) bool) {
		fits := false
		for plan := range planner.Plans(a.found.world, a.found.gang) {
			fits = true
			if !yield(plan) {
				return
			}
		}
		if fits && !a.found.gang.IsLeast() {
			least := *a.found.gang
			least.LeastOnly = true
			for plan := range planner.Plans(a.found.world, &least) {
				if !yield(plan) {
					return
				}
			}
		}
		if len(sharedClaims(a.gang.Waiting)) > 0 {
			a.plansOnOneNode(yield)
		}
	}
}

// plansOnOneNode yields plans that put all members on one node, for members that share a claim: the first member may
// get a device that only its node reaches. It stops when the cycle has to end.
func (a *attempt) plansOnOneNode(yield func(planner.Plan) bool) {
	world, gang := a.found.world, *a.found.gang
	gang.Classes = slices.Clone(gang.Classes)
	for c := range gang.Classes {
		gang.Classes[c].Eligible = make([]bool, len(world.Nodes))
	}
	for n := range world.Nodes {
		if a.until.isOver() {
			return
		}
		if !planner.FitsOn(world, a.found.gang, []int{n}) {
			continue
		}
		for c := range gang.Classes {
			clear(gang.Classes[c].Eligible)
			gang.Classes[c].Eligible[n] = a.found.gang.Classes[c].Eligible == nil || a.found.gang.Classes[c].Eligible[n]
		}
		for plan := range planner.Plans(world, &gang) {
			if !yield(plan) {
				return
			}
		}
	}
}

// plan finds a place for the gang, and leaves the members assumed in the snapshot and reserved. If there is none, plan
// returns the shortfall and leaves nothing behind.
func (a *attempt) plan(ctx context.Context) (*verification, *Shortfall, error) {
	before := maps.Clone(a.filters.rejections)
	if err := a.survey(ctx); err != nil {
		return nil, nil, err
	}
	v := &verification{gang: a.gang, cluster: a.cluster, filters: a.filters, until: a.until, found: a.found}
	tried, verified, unfinished := 0, false, false
	for plan := range a.plans() {
		verified = verified || len(plan.Assignments) > 0
		name := nameOfPlan(a.found.world, &plan)
		if a.complete && a.recalled == nil && a.cluster.Tried.gang(a.gang.Group).plans[name] {
			continue
		}
		if tried++; tried > maxPlans {
			unfinished = a.complete
			break
		}
		ok, err := a.realize(ctx, v, plan)
		if err != nil {
			v.undo(ctx)
			return nil, nil, err
		}
		if ok && (a.recalled == nil || len(v.placements) == len(a.gang.Waiting)) {
			if a.complete {
				a.cluster.Tried.forget(a.gang.Group)
			}
			return v, nil, nil
		}
		v.undo(ctx)
		if a.recalled != nil {
			break
		}
		if a.complete {
			a.cluster.Tried.gang(a.gang.Group).plans[name] = true
		}
	}
	if a.recalled != nil && (verified || countsDevices(a.found.classes) || len(candidates(a.found.world, a.found.gang)) > 0) {
		// The kept pass does not show for certain that there is no room.
		a.cluster.Passes.drop(a.recalled)
		a.recalled, a.filters.rejections = nil, before
		return a.plan(ctx)
	}
	if unfinished {
		why := explain(a.found, true, a.filters.rejections)
		why.Unfinished = true
		return nil, why, nil
	}
	if a.until.isOver() {
		return nil, nil, errOverdue
	}
	if a.complete {
		clear(a.cluster.Tried.gang(a.gang.Group).plans)
		if ok, err := a.withoutPlan(ctx, v); ok || err != nil {
			return v, nil, err
		}
	}
	why := explain(a.found, verified, a.filters.rejections)
	if a.until.isOver() { // the planner may have given up
		return nil, nil, errOverdue
	}
	return nil, why, nil
}

// candidates returns the sets of nodes that may hold a gang. The planner, which does not try all ways to pack, may find no
// plan for some of them.
func candidates(world *planner.World, gang *planner.Gang) [][]int {
	return slices.DeleteFunc(planner.Candidates(world, gang), func(nodes []int) bool { return planner.Exceeds(world, gang, nodes) })
}

// withoutPlan places the gang's members one by one, as the last resort. It does not try if that failed before and
// nothing that may help has changed since. If it returns false, no member is left assumed.
func (a *attempt) withoutPlan(ctx context.Context, v *verification) (bool, error) {
	gang := *a.found.gang
	gang.Levels = slices.Clone(gang.Levels)
	for l := len(a.gang.Group.Spec.Topology); l < len(gang.Levels); l++ {
		gang.Levels[l].Required = false // of members, not of the group
	}
	sets := candidates(a.found.world, &gang)
	if len(sets) == 0 {
		return false, nil
	}
	nodes, err := a.cluster.Snapshot.List()
	if err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	tried, print, now := a.cluster.Tried.gang(a.gang.Group).without, a.found.print(nodes), a.cluster.Now()
	maps.DeleteFunc(tried, func(_ uint64, at time.Time) bool { return now.Sub(at) >= retryAfter })
	if _, inVain := tried[print]; inVain {
		return false, nil
	}
	members := v.membersOf(func(class int) int { return len(a.found.classes[class].members) })
	until, said := a.until.share(2), maps.Clone(a.filters.rejections)
	for _, packs := range []bool{false, true} {
		for _, nodes := range sets {
			o := &oneByOne{verification: v, until: until, packs: packs}
			if ok, err := o.place(ctx, members, nodes, v.sufficient(members)); ok || err != nil {
				a.cluster.Tried.forget(a.gang.Group)
				return ok, err
			}
		}
	}
	a.filters.rejections = said // these rejections were about plans
	tried[print] = now
	return false, nil
}
