// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
)

// Most gangs are like others, and running the Filter and Score plugins over thousands of nodes takes longer than the
// rest of a cycle. So the answers are kept in a pass, and for the next similar gang only the nodes that have changed
// are looked at.
//
// A rejection is kept only if it depends on nothing but the node. An acceptance may be outdated, so a kept pass may show
// too much room, but never too little. From that follows when a kept pass decides:
//
//   - The gang is placed by the pass if the plugins accept each member on the planned node, and no member is left over.
//   - The gang is refused by the pass if no set of nodes can hold it, by a bound that holds for any way to pack.
//   - Otherwise the gang gets a new pass. A gang that takes devices is never refused by a kept pass: devices become free
//     without a change of their node.

// maxPasses is how many passes are kept at most.
const maxPasses = 8

// pass is what the plugins have said of each node for the classes of a gang. It is kept for later gangs with the same
// classes.
type pass struct {
	// key is equal for gangs with the same classes, resources and topology keys, in order.
	key string
	// nodes are the nodes of world, as in the snapshot. generations has, for each node, its generation when the plugins
	// last looked at it, or outdated.
	nodes       []fwk.NodeInfo
	generations []int64
	world       *planner.World
	// avoided reports that some nodes have taints with the effect PreferNoSchedule. The scores of nodes then depend on
	// each other.
	avoided bool
	// compared reports that the scores of nodes depend on each other for another reason.
	compared bool
	views    []classPass
	// taken is what absent Pods took on nodes when the pass was last renewed, by the index of the node.
	taken map[int][]int64
	// said is what the plugins said, each thing once. number has the indexes.
	said   []said
	number map[said]uint16
}

// said is why a plugin rejected a node. passes reports that the plugin may accept the node when Pods there have ended.
type said struct {
	plugin, reason string
	passes         bool
}

// classPass is the part of a pass about one class.
type classPass struct {
	// fits reports for each node whether the node may hold a member if resources are left aside. feasible reports
	// whether the node has the resources for a member now, too.
	fits, feasible []bool
	// because has, for each node that a plugin rejects, the index in pass.said of what the plugin said, plus 1. It is 0
	// for other nodes, also for nodes that the nodeSelector excludes (filters.selected). because is nil if it would be 0
	// for all nodes.
	because []uint16
	// request is what a member takes.
	request []int64
}

// outdated stands for the generation of a node that the plugins have to look at again for the next gang.
const outdated = -1

// newPass returns an empty pass.
func newPass(key string, nodes []fwk.NodeInfo, resources resources, levels int, classes []*class) *pass {
	p := &pass{key: key, number: make(map[said]uint16), nodes: slices.Clone(nodes), generations: slices.Repeat([]int64{outdated}, len(nodes)),
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

// renew updates the resources and domains of each node that has changed. It returns the indexes of these nodes, which
// the plugins have to look at again. taken is what absent Pods take, by the index of the node. unsteady are the nodes
// with nominated Pods, and with Pods that are assumed because of reservations. Which of these Pods count depends on the
// gang, and none of them changes the node's generation, so the plugins look at these nodes for each gang.
func (p *pass) renew(resources resources, levels []planner.Level, taken map[int][]int64, unsteady sets.Set[string]) (changed []int) {
	for n, info := range p.nodes {
		node, seen, generation := info.Node(), &p.world.Nodes[n], info.GetGeneration()
		if len(unsteady) > 0 && unsteady.Has(node.Name) {
			generation = outdated
		}
		isSame := generation != outdated && generation == p.generations[n]
		if isSame && taken[n] == nil && p.taken[n] == nil {
			continue
		}
		resources.readFree(seen.Free, info)
		for r, q := range taken[n] {
			seen.Free[r] -= q
		}
		if isSame {
			continue
		}
		p.generations[n] = generation
		changed = append(changed, n)
		seen.Name, seen.Preferred, seen.Score = node.Name, 0, 0
		p.avoided = p.avoided || slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
			return taint.Effect == corev1.TaintEffectPreferNoSchedule
		})
		for l := range levels {
			seen.Domains[l] = node.Labels[levels[l].Key]
		}
		for i := range p.views {
			p.views[i].forget(n)
		}
	}
	p.taken = taken
	return changed
}

// forget forgets what the plugins have said of a node.
func (v *classPass) forget(node int) {
	v.fits[node], v.feasible[node] = false, false
	if v.because != nil {
		v.because[node] = 0
	}
}

// reject records what a plugin said that rejects a node for a class. If the plugins say more than 65,535 different things,
// the last one stands for the rest.
func (p *pass) reject(of *classPass, node int, status *fwk.Status) {
	this := said{status.Plugin(), status.Message(), status.Code() == fwk.Unschedulable}
	number, known := p.number[this]
	switch {
	case known:
	case len(p.said) == math.MaxUint16:
		number = math.MaxUint16
	default:
		p.said = append(p.said, this)
		number = uint16(len(p.said))
		p.number[this] = number
	}
	if of.because == nil {
		of.because = make([]uint16, len(of.fits))
	}
	of.because[node] = number
}

// countReasons adds the number of nodes that are rejected for a class to reasons, by reason.
func (p *pass) countReasons(of *classPass, reasons map[string]int) {
	for n, fits := range of.fits {
		switch {
		case fits:
		case of.because == nil || of.because[n] == 0:
			reasons[kube.ReasonNodeAffinity]++
		default:
			reasons[p.said[of.because[n]-1].reason]++
		}
	}
}

// Passes are the passes that are kept from gang to gang to save time, the last used first; see doc.go. Some other answers
// are kept with them. The zero value is empty.
type Passes struct {
	kept    []*pass
	devices deviceMatches
	ends    byNode[lastEnd]
	lowest  byNode[int32]
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
	// The same classes have other resources once a DeviceClass stands for one of them, or a node has it.
	for _, name := range resources.names {
		key.WriteString(name)
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
