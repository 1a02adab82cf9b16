// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestOnWhichNodeASmallGangIsPlaced: of three nodes of eight cores, node-0 has a gang of four cores that runs for an
// hour, and node-1 a gang of two cores that runs for a day. node-2 is empty. kube-scheduler's own plugins would place
// each Pod on the emptiest node.
func TestOnWhichNodeASmallGangIsPlaced(t *testing.T) {
	cores := func(n string) podOption {
		return func(p *schedulertesting.PodWrapper) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse(n)
		}
	}
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
		"where a member prefers to be":              {makeGroup("gang", 1), makeMembers("gang", 1, prefers("node-2")), "node-2"},
		"on one that is in use for as long":         {makeGroup("gang", 1, runsFor(2*hour)), makeMembers("gang", 1), "node-1"},
		"on the fullest of those":                   {makeGroup("gang", 1, runsFor(hour/2)), makeMembers("gang", 1), "node-0"},
		"on the one that is in use for longest":     {makeGroup("gang", 1, runsFor(48*hour)), makeMembers("gang", 1), "node-1"},
		"on any that holds it, whatever runs there": {makeGroup("gang", 1, runsFor(hour/2)), makeMembers("gang", 1, cores("7")), "node-2"},
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
