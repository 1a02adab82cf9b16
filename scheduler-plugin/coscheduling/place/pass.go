// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Most gangs are like others, and a pass of the Filter and Score plugins over thousands of
// nodes takes longer than the rest of a cycle. So what a pass has shown is kept, and for the
// next gang that is alike only those nodes are looked at that have changed since.
//
// That a node rejects a class is kept only if it depends on nothing but that node. That it
// admits the class need not be true any more: each member is verified on its node. And a
// gang is only ever placed whole by what was kept. If it finds no place for all of its
// members so, it has a pass of its own, and what it is told is from that.

// maxPasses bounds how many passes are kept.
const maxPasses = 8

// pass is what the plugins have said of all nodes for the classes of a gang.
type pass struct {
	// key is equal for gangs with the same classes and the same topology keys, in their
	// order.
	key string
	// nodes are those of the world, as the snapshot has them, and generations which
	// state of each of them was looked at.
	nodes       []fwk.NodeInfo
	generations []int64
	// taken is what nominated Pods take of nodes, by the index of the node. It is not free in
	// the world.
	taken map[int][]int64
	world *planner.World
	// avoided says that some nodes have taints that Pods had better not tolerate. The scores of
	// nodes depend on each other then.
	avoided bool
	// compared says that the scores of nodes depend on each other for another reason.
	compared bool
	views    []classPass
}

// classPass is the part of one class.
type classPass struct {
	// fits says for each node whether it may hold a member, resources aside, and feasible
	// whether it may as things are.
	fits, feasible []bool
	// request is what a member takes.
	request []int64
}

// newPass is a pass that has shown nothing yet.
func newPass(key string, nodes []fwk.NodeInfo, resources resources, levels int, classes []*class) *pass {
	p := &pass{key: key, nodes: slices.Clone(nodes), generations: slices.Repeat([]int64{-1}, len(nodes)),
		world: &planner.World{Resources: resources.names, Nodes: make([]planner.Node, len(nodes))}}
	// One piece of memory for all nodes: there may be thousands, and a cycle every
	// millisecond.
	free := make([]int64, len(nodes)*len(resources.names))
	domains := make([]string, len(nodes)*levels)
	for n := range nodes {
		node := &p.world.Nodes[n]
		node.Free, free = cut(free, len(resources.names))
		node.Domains, domains = cut(domains, levels)
	}
	for _, class := range classes {
		p.views = append(p.views, classPass{fits: make([]bool, len(nodes)), feasible: make([]bool, len(nodes)),
			request: resources.request(class)})
	}
	return p
}

// cut cuts the first n elements off, to which nothing can be appended in place.
func cut[T any](of []T, n int) (first, rest []T) {
	return slices.Clip(of[:n]), of[n:]
}

// renew reads anew what a node has, if it is not in the state that was looked at, or nominated
// Pods take something else of it. It returns the nodes that are to be looked at again.
func (p *pass) renew(resources resources, levels []planner.Level, taken map[int][]int64) (changed []int) {
	before := p.taken
	p.taken = taken
	nominated := len(before) > 0 || len(taken) > 0
	for n, info := range p.nodes {
		generation := info.GetGeneration()
		if p.generations[n] == generation && (!nominated || slices.Equal(before[n], taken[n])) {
			continue
		}
		isNew := p.generations[n] == -1
		p.generations[n] = generation
		changed = append(changed, n)
		node, seen := info.Node(), &p.world.Nodes[n]
		seen.Name, seen.Score = node.Name, 0
		p.avoided = p.avoided || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Effect == corev1.TaintEffectPreferNoSchedule
		})
		resources.readFree(seen.Free, info)
		for r, q := range taken[n] {
			seen.Free[r] -= q
		}
		for l := range levels {
			seen.Domains[l] = node.Labels[levels[l].Key]
		}
		for i := range p.views {
			if isNew {
				break // nothing is known of it
			}
			p.views[i].fits[n], p.views[i].feasible[n] = false, false
		}
	}
	return changed
}

// Passes are those that are kept, the last one first. They save time; see doc.go.
// The zero value keeps none yet.
type Passes struct {
	kept    []*pass
	devices deviceMatches
}

// take takes out the pass of a key, if it is of just these nodes. Who took it puts it back.
func (ps *Passes) take(key string, nodes []fwk.NodeInfo) *pass {
	for i, p := range ps.kept {
		if p.key == key {
			ps.kept = slices.Delete(ps.kept, i, i+1)
			if slices.Equal(p.nodes, nodes) {
				return p
			}
			return nil
		}
	}
	return nil
}

// put keeps a pass, and the one that was asked for longest ago no more if there are too
// many.
func (ps *Passes) put(p *pass) {
	ps.kept = slices.Insert(ps.kept, 0, p)
	ps.kept = slices.Delete(ps.kept, min(len(ps.kept), maxPasses), len(ps.kept))
}

// drop keeps a pass no more.
func (ps *Passes) drop(p *pass) {
	ps.kept = slices.DeleteFunc(ps.kept, func(other *pass) bool { return other == p })
}

// passOf is a pass for the attempt's classes: one that was kept, or a new one.
func passOf(a *attempt, nodes []fwk.NodeInfo, resources resources, levels []planner.Level) *pass {
	var key strings.Builder
	for _, class := range a.found.classes {
		key.WriteString(class.key)
		key.WriteByte('\n')
	}
	for _, level := range levels {
		key.WriteString(level.Key)
		key.WriteByte('\n')
	}
	if a.shares {
		if p := a.cluster.Passes.take(key.String(), nodes); p != nil {
			a.recalled = p
			return p
		}
	}
	return newPass(key.String(), nodes, resources, len(levels), a.found.classes)
}

// keepPass keeps what a pass has shown for others, if it holds for them.
func keepPass(a *attempt, p *pass) {
	if a.shares && !p.avoided && !p.compared && onlyNodesDecide(a.found.classes) {
		a.cluster.Passes.put(p)
	}
}
