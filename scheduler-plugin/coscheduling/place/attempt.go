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

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxPlans bounds how many plans of a gang are verified in one attempt; see Tried. Plans
// differ in their topology domain; one that fails verification has members that
// constrain each other by affinity or spread, and each costs about as much as
// scheduling the members one by one.
const maxPlans = 32

// attempt plans a gang on the snapshot as it is, and verifies what it has planned.
type attempt struct {
	gang    *Gang
	cluster *Cluster
	filters *filters
	// until is when the attempt has to end.
	until deadline
	// found is what the last survey has found.
	found *survey
	// shares says that the attempt may share a pass over all nodes with others, and recalled
	// is the one that it has from another, nil if it has its own.
	shares   bool
	recalled *pass
	// complete says that members are placed one by one if that is better, or if no plan holds. A search for
	// victims, which makes many attempts, does without.
	complete bool
}

// newAttempt is an attempt in which plugins have rejected members already.
func newAttempt(gang *Gang, cluster *Cluster, said rejections) *attempt {
	return &attempt{gang: gang, cluster: cluster, filters: &filters{name: cluster.Plugin, rejections: said}, until: cluster.deadline(), found: &survey{}}
}

// plans are the planner's, with as many members as fit and then with no more than the minima
// ask for. Members that constrain each other may take the places of those that are needed. If
// the minima find no room the first time they are not packed again.
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

// plansOnOneNode are plans for members that share a claim: the device which the first of them
// gets may be one that only its node reaches. They end when the cycle has to.
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

// plan finds a place for the gang, and leaves it assumed in the snapshot and
// reserved. The shortfall says why there is none; then nothing is left behind.
func (a *attempt) plan(ctx context.Context) (*verification, *Shortfall, error) {
	before := maps.Clone(a.filters.rejections)
	if err := a.survey(ctx); err != nil {
		return nil, nil, err
	}
	v := &verification{gang: a.gang, cluster: a.cluster, filters: a.filters, until: a.until, found: a.found}
	tried, verified, unfinished := 0, false, false
	for plan := range a.plans() {
		verified = true
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
	if a.recalled != nil {
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

// withoutPlan places the gang's members one by one, as the last resort, unless that was in vain and nothing has changed since that may
// help. It leaves nothing behind if it returns false.
func (a *attempt) withoutPlan(ctx context.Context, v *verification) (bool, error) {
	gang := *a.found.gang
	gang.Levels = slices.Clone(gang.Levels)
	for l := len(a.gang.Group.Spec.Topology); l < len(gang.Levels); l++ {
		gang.Levels[l].Required = false // of members, not of the group
	}
	sets := slices.DeleteFunc(planner.Candidates(a.found.world, &gang), func(nodes []int) bool { return planner.Exceeds(a.found.world, &gang, nodes) })
	if len(sets) == 0 {
		return false, nil
	}
	nodes, err := a.cluster.Snapshot.List()
	if err != nil {
		return false, fmt.Errorf("listing nodes: %w", err)
	}
	tried, print, now := a.cluster.Tried.gang(a.gang.Group).without, a.found.print(nodes), a.cluster.Now()
	maps.DeleteFunc(tried, func(_ uint64, at time.Time) bool { return now.Sub(at) >= idleAfter })
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
	a.filters.rejections = said // they were said of plans
	tried[print] = now
	return false, nil
}
