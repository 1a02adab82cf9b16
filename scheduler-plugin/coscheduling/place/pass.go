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

// Most gangs are like others, and running the Filter and Score plugins over thousands of nodes takes longer than the
// rest of a cycle. So the answers are kept in a pass, and for the next similar gang only the nodes that have changed
// are looked at.
//
// A rejection is kept only if it depends on nothing but the node. An acceptance may be outdated: each member is
// verified on its node anyway. A gang is placed by a kept pass only as a whole. If not all members find a place, the
// gang gets a new pass, and its message comes from the new pass.

// maxPasses is how many passes are kept at most.
const maxPasses = 8

// pass is what the plugins have said of each node for the classes of a gang. It is kept for later gangs with the same
// classes.
type pass struct {
	// key is equal for gangs with the same classes and the same topology keys, in order.
	key string
	// nodes are the nodes of world, as in the snapshot. generations has, for each node, its generation when the plugins
	// last looked at it.
	nodes       []fwk.NodeInfo
	generations []int64
	// taken is what nominated Pods take, by the index of the node. In world this is not free.
	taken map[int][]int64
	world *planner.World
	// avoided reports that some nodes have taints with the effect PreferNoSchedule. The scores of nodes then depend on
	// each other.
	avoided bool
	// compared reports that the scores of nodes depend on each other for another reason.
	compared bool
	views    []classPass
}

// classPass is the part of a pass about one class.
type classPass struct {
	// fits reports for each node whether the node may hold a member if resources are left aside. feasible reports
	// whether the node has the resources for a member now, too.
	fits, feasible []bool
	// request is what a member takes.
	request []int64
}

// newPass returns an empty pass.
func newPass(key string, nodes []fwk.NodeInfo, resources resources, levels int, classes []*class) *pass {
	p := &pass{key: key, nodes: slices.Clone(nodes), generations: slices.Repeat([]int64{-1}, len(nodes)),
		world: &planner.World{Resources: resources.names, Nodes: make([]planner.Node, len(nodes))}}
	// One allocation for all nodes: there may be thousands, and a cycle every millisecond.
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

// cut splits off the first n elements, with no capacity for appending in place.
func cut[T any](of []T, n int) (first, rest []T) {
	return slices.Clip(of[:n]), of[n:]
}

// renew updates the resources and domains of each node that has changed, or on which nominated Pods take other
// resources than before. It returns the indexes of these nodes, which the plugins have to look at again.
func (p *pass) renew(resources resources, levels []planner.Level, taken map[int][]int64) (changed []int) {
	before := p.taken
	p.taken = taken
	nominated := len(before) > 0 || len(taken) > 0
	for n, info := range p.nodes {
		generation := info.GetGeneration()
		if p.generations[n] == generation && (!nominated || slices.Equal(before[n], taken[n])) {
			continue
		}
		p.generations[n] = generation
		changed = append(changed, n)
		node, seen := info.Node(), &p.world.Nodes[n]
		seen.Name, seen.Preferred, seen.Score = node.Name, 0, 0
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
			p.views[i].fits[n], p.views[i].feasible[n] = false, false
		}
	}
	return changed
}

// Passes are the passes that are kept from gang to gang to save time, the last used first; see doc.go. Two other answers
// are kept with them. The zero value is empty.
type Passes struct {
	kept    []*pass
	devices deviceMatches
	ends    lastEnds
}

// take removes and returns the pass with a key if it is for exactly these nodes, otherwise nil. The caller puts the
// pass back with put.
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

// put keeps a pass. If there are too many, put drops the least recently used one.
func (ps *Passes) put(p *pass) {
	ps.kept = slices.Insert(ps.kept, 0, p)
	ps.kept = slices.Delete(ps.kept, min(len(ps.kept), maxPasses), len(ps.kept))
}

// drop removes a pass.
func (ps *Passes) drop(p *pass) {
	ps.kept = slices.DeleteFunc(ps.kept, func(other *pass) bool { return other == p })
}

// passOf returns a pass for the attempt's classes: a kept one, or a new one.
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

// keepPass keeps the parts of a pass that hold for other gangs, if any.
func keepPass(a *attempt, p *pass) {
	if a.shares && !p.avoided && !p.compared && onlyNodesDecide(a.found.classes) {
		a.cluster.Passes.put(p)
	}
}
