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

// Tried records for each gang what failed in earlier cycles. First, it has the plans that the plugins rejected: a cycle
// verifies at most maxPlans plans, and the next one continues. Second, it has the times at which placing the members
// without a plan failed. The zero value is empty.
type Tried struct {
	of map[groupAsItIs]*tried
}

type tried struct {
	plans map[triedPlan]bool
	// without is the time at which placing members without a plan failed, by a hash of what the survey found; see
	// print.
	without map[uint64]time.Time
}

// retryAfter is how long after a failure members are placed without a plan again, even if the survey has found no
// change. The survey does not see everything that may help, such as a new volume.
const retryAfter = time.Minute

// groupAsItIs identifies a PodGroup with its present spec. If the spec changes, or another PodGroup gets the name, what
// failed before may succeed.
type groupAsItIs struct {
	key        dialect.Key
	uid        types.UID
	generation int64
}

func asItIs(group *dialect.Group) groupAsItIs {
	return groupAsItIs{group.Key, group.UID, group.Generation}
}

// triedPlan identifies a plan that failed: by the first of its nodes in the order of the cluster, the number of members
// and, if all members are on one node, that node.
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

// gang returns what failed for a gang. The caller may add to the result.
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

// print returns a hash that differs between two surveys if anything has changed that may help place members without a
// plan. The hash covers the members, and what is free on each node that has room for one. If a member's placement
// depends on other Pods, the hash also covers every change of a node.
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
		if node := &s.world.Nodes[n]; planner.Holds(s.world, s.gang, n) {
			_, _ = io.WriteString(h, node.Name)
			add(node.Free...)
		}
		if !blind {
			add(nodes[n].GetGeneration())
		}
	}
	return h.Sum64()
}
