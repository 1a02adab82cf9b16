// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// maxTried bounds the gangs of which it is known what was tried for them.
const maxTried = 1000

// Tried is what was tried for gangs in vain: the plans of a search that is not finished, as a cycle verifies maxPlans of them and
// the next cycle of the gang goes on with the others; and placing members without a plan. The zero value has nothing.
type Tried struct {
	of map[groupAsItIs]*tried
}

type tried struct {
	plans map[triedPlan]bool
	// without is when members were placed without a plan in vain, by what was found then.
	without map[uint64]time.Time
}

// idleAfter is after what time members are placed without a plan again even if all that is known is as before: something may help that
// is not found, such as a volume.
const idleAfter = time.Minute

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

// gang returns what was tried for a gang. It may be added to.
func (t *Tried) gang(group *dialect.Group) *tried {
	if t.of == nil {
		t.of = make(map[groupAsItIs]*tried)
	}
	gang := asItIs(group)
	if t.of[gang] == nil {
		for other := range t.of { // any one: it starts over
			if len(t.of) < maxTried {
				break
			}
			delete(t.of, other)
		}
		t.of[gang] = &tried{plans: make(map[triedPlan]bool), without: make(map[uint64]time.Time)}
	}
	return t.of[gang]
}

// forget forgets what was tried for a gang.
func (t *Tried) forget(group *dialect.Group) { delete(t.of, asItIs(group)) }

// print is equal for surveys that find the same as far as it may help members that are placed without a plan: who they are, and what is
// free on each node that may hold one of them; and all that changes on nodes, if it matters to a member which Pods are there.
func (s *survey) print(nodes []fwk.NodeInfo) uint64 {
	h := fnv.New64a()
	add := func(numbers ...int64) {
		var b [8]byte
		for _, n := range numbers {
			binary.LittleEndian.PutUint64(b[:], uint64(n))
			_, _ = h.Write(b[:]) // a hash never fails
		}
	}
	for c, class := range s.classes {
		_, _ = io.WriteString(h, class.key)
		add(int64(len(class.members)))
		add(s.gang.Classes[c].Request...)
	}
	blind := isBlind(s.classes)
	for n := range s.world.Nodes {
		node, holds := &s.world.Nodes[n], false
		for c, class := range s.classes {
			holds = holds || class.fits[n] && !exceeds(s.gang.Classes[c].Request, node.Free)
		}
		if holds {
			_, _ = io.WriteString(h, node.Name)
			add(node.Free...)
		}
		if !blind {
			add(nodes[n].GetGeneration())
		}
	}
	return h.Sum64()
}

// exceeds reports whether a request is more than what is free.
func exceeds(request, free []int64) bool {
	for r := range request {
		if request[r] > free[r] {
			return true
		}
	}
	return false
}
