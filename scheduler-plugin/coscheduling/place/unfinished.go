// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxUnfinished bounds the gangs whose search goes on in their next turn.
const maxUnfinished = 1000

// Unfinished are the searches that were not finished in a turn: a turn verifies maxPlans plans, and the next turn
// of the gang goes on with the others. The zero value has none.
type Unfinished struct {
	tried map[groupAsItIs]map[triedPlan]bool
}

// groupAsItIs is a group until its spec changes or another one takes its name: what failed then may hold now.
type groupAsItIs struct {
	key        dialect.Key
	uid        types.UID
	generation int64
}

func asItIs(group *dialect.Group) groupAsItIs {
	return groupAsItIs{group.Key, group.UID, group.Generation}
}

// triedPlan is a plan that failed: by the first of its nodes, how many members it places, and the node where all of them
// are if there is one.
type triedPlan struct {
	node    string
	members int
	on      string
}

// nameOfPlan returns what tells a plan from the others of its gang.
func nameOfPlan(world *planner.World, plan *planner.Plan) triedPlan {
	first, members, on := plan.Nodes[0], 0, ""
	for _, n := range plan.Nodes {
		first = min(first, n)
	}
	for _, a := range plan.Assignments {
		members += a.Count
	}
	if all := plan.Assignments; len(all) > 0 && !slices.ContainsFunc(all, func(a planner.Assignment) bool { return a.Node != all[0].Node }) {
		on = world.Nodes[all[0].Node].Name
	}
	return triedPlan{world.Nodes[first].Name, members, on}
}

// has reports whether a plan of a gang has failed in an unfinished search.
func (u *Unfinished) has(group *dialect.Group, plan triedPlan) bool {
	return u.tried[asItIs(group)][plan]
}

// add records that a plan of a gang has failed.
func (u *Unfinished) add(group *dialect.Group, plan triedPlan) {
	if u.tried == nil {
		u.tried = make(map[groupAsItIs]map[triedPlan]bool)
	}
	gang := asItIs(group)
	if u.tried[gang] == nil {
		for other := range u.tried { // any one: it starts over
			if len(u.tried) < maxUnfinished {
				break
			}
			delete(u.tried, other)
		}
		u.tried[gang] = make(map[triedPlan]bool)
	}
	u.tried[gang][plan] = true
}

// end forgets the search of a gang.
func (u *Unfinished) end(group *dialect.Group) { delete(u.tried, asItIs(group)) }
