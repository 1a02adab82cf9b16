// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

// PreFilter of PodTopologySpread counts Pods on all nodes, and would do so again for each of thousands of members. But
// the counts for one member also hold for the next member of the class, on each node in a domain where no member was
// placed since: the domain's count is the same, and the emptiest domain's count is not lower. So if Filter accepts the
// node with the old counts, Filter would accept the node with new counts.

// counted is the result of the PreFilter plugins for a class, as it was before the last members were placed.
type counted struct {
	state   fwk.CycleState
	nodes   sets.Set[string]
	changed sets.Set[string] // topology keys and domains where members have been placed since
}

// isReusable reports whether the Filter plugins may be run for members of a class with an older result of PreFilter.
// This holds if the members have spread constraints, no claims and nothing else that depends on other Pods, and if the
// profile's plugins are only those of kube-scheduler and this one.
func (v *verification) isReusable(of *class) bool {
	if v.reusable == nil {
		v.reusable = make(map[string]bool)
		attracts := slices.ContainsFunc(v.found.classes, func(c *class) bool {
			return c.regard.drawn || c.regard.averse
		})
		for _, c := range v.found.classes {
			v.reusable[c.key] = !attracts && len(c.members) > 1 && c.regard.spread && len(c.devices) == 0 && !ownsClaims(c.info.Pod) &&
				kube.OnlyUpstream(c.handle, v.cluster.Plugin)
		}
	}
	return v.reusable[of.key]
}

// recall returns a copy of the class's older PreFilter result if it is still right for a node.
func (v *verification) recall(class *class, node string) (fwk.CycleState, bool) {
	before := class.counted
	info, err := v.cluster.Snapshot.Get(node)
	if before == nil || err != nil || before.nodes != nil && !before.nodes.Has(node) {
		return nil, false
	}
	for i := range class.info.Pod.Spec.TopologySpreadConstraints {
		key := class.info.Pod.Spec.TopologySpreadConstraints[i].TopologyKey
		if before.changed.Has(domainName(key, info.Node())) {
			return nil, false
		}
	}
	return before.state.Clone(), true
}

// remember keeps a state for the next members of a class.
func (v *verification) remember(class *class, state fwk.CycleState, nodes sets.Set[string]) {
	if v.isReusable(class) {
		class.counted = &counted{state: state.Clone(), nodes: nodes, changed: sets.New[string]()}
	}
}

// outdate records that a member was placed on a node.
func (v *verification) outdate(node *corev1.Node) {
	for _, class := range v.found.classes {
		if class.counted == nil {
			continue
		}
		for i := range class.info.Pod.Spec.TopologySpreadConstraints {
			class.counted.changed.Insert(domainName(class.info.Pod.Spec.TopologySpreadConstraints[i].TopologyKey, node))
		}
	}
}

func domainName(key string, node *corev1.Node) string { return key + "=" + node.Labels[key] }
