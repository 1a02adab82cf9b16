// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// survey is the cluster as a gang finds it.
type survey struct {
	// classes are the classes of the gang's members, each with what the plugins said of the nodes.
	classes []*class
	// world and gang are the planner's input. gang has the classes above, in order.
	world *planner.World
	gang  *planner.Gang
	// provided are the extended resources that some node has and no DeviceClass stands for.
	provided map[corev1.ResourceName]bool
	// avoided reports that some nodes have taints that Pods prefer to avoid.
	avoided bool
}

// survey makes the planner's input from the snapshot and from what the Filter plugins say of each class and node. On an
// error the classes may be set nevertheless.
func (a *attempt) survey(ctx context.Context) error {
	a.found = &survey{}
	nodes, err := a.cluster.Snapshot.List()
	if err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	keys := slices.Clone(a.gang.ClassKeys)
	for i, pod := range a.gang.Waiting {
		if ownsClaims(pod) {
			keys[i] += pinsOf(a.cluster.Profiles[pod.Spec.SchedulerName], pod)
		}
	}
	read, err := podclass.LabelKeys(a.gang.Waiting, a.gang.ClassKeys, repelling(nodes, a.cluster.Nominated, a.gang.Key.Namespace))
	if err != nil {
		return err
	}
	for i := range keys {
		keys[i] += read[i]
	}
	classes, err := classify(a.gang.Key, a.gang.Waiting, keys, a.cluster.Profiles)
	if err != nil {
		return err
	}
	a.found.classes = classes
	resources := newResources(classes)
	if len(resources.scalars) > maxExtended {
		return errManyResources
	}
	wants := wantsOf(classes)
	gang := &planner.Gang{Levels: podclass.Levels(a.gang.Group.Spec.Topology, wants, nodesUnder(a.gang, a.cluster.Snapshot), a.until.isOver), IsOver: a.until.isOver}
	gang.Min, gang.MinRole = a.gang.minima()

	resources = resources.with(roomOfDevices(ctx, a, nodes))
	a.found.provided = resources.provided(nodes, classes)
	pass := passOf(a, nodes, resources, gang.Levels)
	taken := a.cluster.ahead.counted.on(nodes, resources)
	changed := pass.renew(resources, gang.Levels, taken, a.unsteady)
	a.found.world, a.found.gang, a.found.avoided = pass.world, gang, pass.avoided
	for i, class := range classes {
		if a.until.isOver() {
			return errOverdue
		}
		view := &pass.views[i]
		if err := a.filters.filter(ctx, class, pass, view, changed); err != nil {
			return err
		}
		for _, n := range changed {
			if view.feasible[n] {
				relax(view.request, pass.world.Nodes[n].Free, taken[n])
			}
		}
		class.leaveClosed(pass.world, a.cluster.IsClosed)
		gang.Classes = append(gang.Classes, planner.Class{
			Role: class.role, Count: len(class.members), Priority: corev1helpers.PodPriority(class.members[0]), Request: view.request, Eligible: class.fits, PerNode: class.wants.PerNode(), Spreads: class.spreads(nodes),
		})
		if i == 0 {
			compared, err := a.filters.score(ctx, class, view, nodes, changed, pass.world)
			if err != nil {
				return err
			}
			pass.compared = pass.compared || compared
		}
	}
	preferFirst(a, pass.world)
	for n := range nodes {
		pass.world.Nodes[n].Lasts = a.lasting != nil && a.lasting[n]
	}
	for i, others := range podclass.Repulsion(wants, a.until.isOver) {
		gang.Classes[i].Repels = others
	}
	if a.until.isOver() {
		return errOverdue
	}
	keepPass(a, pass)
	return nil
}

// repelling yields the selectors of the required anti-affinity terms that may apply to Pods of a namespace. It looks at
// the Pods on the given nodes and at nominated Pods.
func repelling(nodes []fwk.NodeInfo, nominated absent, namespace string) iter.Seq[labels.Selector] {
	return func(yield func(labels.Selector) bool) {
		all := func(infos []fwk.PodInfo) bool {
			for _, info := range infos {
				for _, term := range info.GetRequiredAntiAffinityTerms() {
					if _, more := term.NamespaceSelector.Requirements(); !more && !term.Namespaces.Has(namespace) {
						continue
					}
					if !yield(term.Selector) {
						return false
					}
				}
			}
			return true
		}
		for _, node := range nodes {
			if !all(node.GetPodsWithRequiredAntiAffinity()) {
				return
			}
		}
		for _, infos := range nominated {
			if !all(infos) {
				return
			}
		}
	}
}

// nodesUnder returns the nodes that the gang's members are on.
func nodesUnder(g *Gang, snapshot kube.Snapshot) []*corev1.Node {
	var on []*corev1.Node
	for _, name := range g.Nodes {
		if info, err := snapshot.Get(name); err == nil {
			on = append(on, info.Node())
		}
	}
	return on
}

// relax removes from a request each resource of which a node has too little although the plugins accept the node. The
// plugins do not count such a resource, for instance because an extender or a DeviceClass provides it. Without relax,
// the planner would miss this room. With relax it may overestimate the room, which verification corrects. `taken` is
// what absent Pods take, nil for nothing. A resource is not removed if a node has too little of it only because of
// absent Pods.
func relax(request, free, taken []int64) {
	for r := range request {
		has := free[r]
		if taken != nil {
			has += taken[r]
		}
		if request[r] > has {
			request[r] = 0
		}
	}
}
