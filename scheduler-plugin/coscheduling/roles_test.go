// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// apartFrom keeps a Pod out of the domain of all members of a group.
func apartFrom(group, topologyKey string) podOption {
	return func(w *schedulertesting.PodWrapper) {
		w.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: group}}, TopologyKey: topologyKey,
			}},
		}}
	}
}

// TestMembersOfSeveralRolesThatShareNoNodePreempt: by cores alone the gang would fit without
// a victim, on two nodes.
func TestMembersOfSeveralRolesThatShareNoNodePreempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		apart := apartFrom("gang", corev1.LabelHostname)
		w := newWorld(t, all(makeNodes("free", 2, 4), makeNodes("full", 1, 1), makePod("low", onNode("full-0")),
			makeGroup("gang", 3, roles(map[string]int32{"ps": 1})),
			makePod("gang-0", inGroup("gang"), inRole("worker"), ofPriority(10), apart),
			makePod("gang-1", inGroup("gang"), inRole("worker"), ofPriority(10), apart),
			makePod("gang-2", inGroup("gang"), inRole("ps"), ofPriority(10), apart))...)
		w.start()
		w.eventually("all members are placed", func() bool { return w.placed("gang-") == 3 })
	})
}

// TestMembersAboveTheMinimumTakeNoPlaceOfOneThatIsNeeded: each rack takes one member, which
// only the plugins know, and there are more workers than racks.
func TestMembersAboveTheMinimumTakeNoPlaceOfOneThatIsNeeded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		apart := apartFrom("gang", "rack")
		w := newWorld(t, all(makeNodes("a", 1, 8, "rack=a"), makeNodes("b", 1, 8, "rack=b"),
			makeGroup("gang", 2, roles(map[string]int32{"ps": 1})),
			makePod("gang-0", inGroup("gang"), inRole("worker"), apart),
			makePod("gang-1", inGroup("gang"), inRole("worker"), apart),
			makePod("gang-2", inGroup("gang"), inRole("worker"), apart),
			makePod("gang-3", inGroup("gang"), inRole("ps"), apart))...)
		w.start()
		w.eventually("the minimum is placed", func() bool { return w.placed("gang-") == 2 })
		if w.nodeOf()["gang-3"] == "" {
			t.Error("the member that the minimum asks for is not among those that are placed")
		}
	})
}

// TestMembersOfAHigherPriorityAreInTheMinimum: of a driver and five executors, any three are
// enough to start, and three fit, of which one may be the driver, which is the largest.
func TestMembersOfAHigherPriorityAreInTheMinimum(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 3), makeMembers("gang", 5),
			makePod("gang-driver", inGroup("gang"), plusCores("1"), ofPriority(10)))...)
		w.start()
		w.eventually("the minimum is placed", func() bool { return w.placed("gang-") == 3 })
		if w.nodeOf()["gang-driver"] == "" {
			t.Error("the driver is not among those that are placed")
		}
	})
}

func roles(least map[string]int32) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(spec *schedulingv1alpha1.PodGroupSpec) { spec.MinRoleMember = least }
}
