// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
)

// TestOnWhichNodeASmallGangIsPlaced: of three nodes of eight cores, node-0 has a gang of four cores that runs for an
// hour, and node-1 a gang of two cores that runs for a day. node-2 is empty. kube-scheduler's own plugins would place
// each Pod on the emptiest node.
func TestOnWhichNodeASmallGangIsPlaced(t *testing.T) {
	prefers := func(node string) podOption {
		return func(p *schedulertesting.PodWrapper) {
			p.NodeAffinity(&corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}}}}})
		}
	}
	const hour = 3600
	tests := map[string]struct {
		group   *schedulingv1alpha1.PodGroup
		members []apiruntime.Object
		want    string
	}{
		"on the fullest one that holds it": {makeGroup("gang", 1), makeMembers("gang", 1), "node-0"},
		"also if its members differ": {makeGroup("gang", 2),
			all(makeMembers("gang", 1), makePod("gang-small", inGroup("gang"), cores("500m"))), "node-0"},
		"where a member prefers to be":                      {makeGroup("gang", 1), makeMembers("gang", 1, prefers("node-2")), "node-2"},
		"on one that is in use for as long":                 {makeGroup("gang", 1, runsFor(2*hour)), makeMembers("gang", 1), "node-1"},
		"on the fullest of those":                           {makeGroup("gang", 1, runsFor(hour/2)), makeMembers("gang", 1), "node-0"},
		"on the fullest one, if none is in use for as long": {makeGroup("gang", 1, runsFor(48*hour)), makeMembers("gang", 1), "node-0"},
		"on any that holds it, whatever runs there":         {makeGroup("gang", 1, runsFor(hour/2)), makeMembers("gang", 1, cores("7")), "node-2"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 3, 8),
					makeGroup("hour", 1, runsFor(hour)), makePod("hour-0", inGroup("hour"), cores("4"), onNode("node-0")),
					makeGroup("day", 1, runsFor(24*hour)), makePod("day-0", inGroup("day"), cores("2"), onNode("node-1")))...)
				w.start()
				for _, object := range all(tc.group, tc.members) {
					w.create(object)
				}
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == len(tc.members) })
				for pod, node := range w.nodeOf() {
					if pod != "hour-0" && pod != "day-0" && node != tc.want {
						t.Errorf("%s is on %s, want %s", pod, node, tc.want)
					}
				}
			})
		})
	}
}

// TestANodeIsNotInUseBecauseItIsReserved: node-1 is empty and reserved, with node-2, for a gang that will run for three
// days. Once the reservation is over, no node is in use for two days, so a gang that runs for as long uses the fullest.
func TestANodeIsNotInUseBecauseItIsReserved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const hour = 3600
		w := newWorld(t, all(makeNodes("node", 3, 8),
			makeGroup("day", 1, runsFor(24*hour)), makePod("day-0", inGroup("day"), cores("3"), onNode("node-0")),
			makeGroup("hour", 1, runsFor(hour)), makePod("hour-0", inGroup("hour"), cores("8"), onNode("node-2")))...)
		w.start()
		w.create(bornAt(1, makeGroup("big", 2, runsFor(72*hour))))
		for _, object := range makeMembers("big", 2, cores("8")) {
			w.create(object)
		}
		w.eventually("nodes are reserved", func() bool { return w.waiting()[news.Reserved] == 1 })
		place := func(name string, runs int32) {
			w.create(bornAt(2, makeGroup(name, 1, runsFor(runs))))
			w.create(makePod(name+"-0", inGroup(name)))
			w.eventually(name+" is placed", func() bool { return w.placed(name) == 1 })
			if node := w.nodeOf()[name+"-0"]; node != "node-0" {
				t.Errorf("%s is on %s, want node-0", name, node)
			}
		}
		w.changeNode("node-1", func(node *corev1.Node) {
			node.Annotations = map[string]string{"new": ""} // so that the Pods on the node are looked at anew
		})
		w.eventually("the scheduler has seen it", func() bool { _, has := w.sched.Cache.Dump().Nodes["node-1"].Node().Annotations["new"]; return has })
		place("first", 10*hour)
		for i := range 2 {
			w.deletePod(fmt.Sprintf("big-%d", i))
		}
		w.deleteGroup("big")
		w.eventually("nothing is reserved", func() bool { return w.waiting()[news.Reserved] == 0 })
		place("second", 48*hour)
	})
}
