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

// maxTried is for how many gangs Tried remembers at most.
const maxTried = 1000

// Tried remembers, by gang, what was tried in vain: the plans of an unfinished search (a cycle verifies maxPlans plans,
// and the gang's next cycle continues), and placing members without a plan. The zero value is empty.
type Tried struct {
	of map[groupAsItIs]*tried
}

type tried struct {
	plans map[triedPlan]bool
	// without is when placing members without a plan failed, by a print of what the survey found.
	without map[uint64]time.Time
}

// idleAfter is how long until members are placed without a plan again although nothing known has changed: the survey
// does not see everything that may help, such as a volume.
const idleAfter = time.Minute

// groupAsItIs identifies a group until its spec changes or another group takes its name: what failed before may then
// succeed.
type groupAsItIs struct {
	key        dialect.Key
	uid        types.UID
	generation int64
}

func asItIs(group *dialect.Group) groupAsItIs {
	return groupAsItIs{group.Key, group.UID, group.Generation}
}

// triedPlan identifies a plan that failed: by the first of its nodes, how many members it places, and the node of all
// members if there is only one.
type triedPlan struct {
	node    string
	members int
	on      string
}

// nameOfPlan returns what identifies a plan among those of its gang.
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

// gang returns what was tried for a gang. The caller may add to the result.
func (t *Tried) gang(group *dialect.Group) *tried {
	if t.of == nil {
		t.of = make(map[groupAsItIs]*tried)
	}
	gang := asItIs(group)
	if t.of[gang] == nil {
		for other := range t.of { // any one starts over
			if len(t.of) < maxTried {
				break
			}
			delete(t.of, other)
		}
		t.of[gang] = &tried{plans: make(map[triedPlan]bool), without: make(map[uint64]time.Time)}
	}
	return t.of[gang]
}

// forget drops what was tried for a gang.
func (t *Tried) forget(group *dialect.Group) { delete(t.of, asItIs(group)) }

// print returns a hash that is equal for surveys between which nothing has changed that may help members placed without
// a plan. It covers the members and what is free on each node that may hold one; and all changes of nodes if a member's
// placement depends on other Pods.
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

// exceeds reports whether a request is larger than what is free.
func exceeds(request, free []int64) bool {
	for r := range request {
		if request[r] > free[r] {
			return true
		}
	}
	return false
}
