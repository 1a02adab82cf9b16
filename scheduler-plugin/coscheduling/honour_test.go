// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// nominee is an ordinary Pod of a core and a number of more that has preempted others on a node,
// and waits for the last of them to end, which has a core.
func nominee(node string, cores string, priority int32) []apiruntime.Object {
	preempted := func(w *schedulertesting.PodWrapper) {
		w.Condition(corev1.DisruptionTarget, corev1.ConditionTrue, corev1.PodReasonPreemptionByScheduler)
	}
	return all(makePod("ending-on-"+node, onNode(node), endingSince(0), preempted),
		makePod("nominee-of-"+node, plusCores(cores), ofPriority(priority), func(w *schedulertesting.PodWrapper) { w.NominatedNodeName(node) }))
}

// TestAGangLeavesRoomToPodsThatAreNominated: a node of three cores has two that are free, and
// an ordinary Pod is nominated for all three. A gang of priority 10 needs the two cores.
func TestAGangLeavesRoomToPodsThatAreNominated(t *testing.T) {
	tests := map[string]struct {
		priority   int32 // of the Pod
		group      *schedulingv1alpha1.PodGroup
		members    int32 // their priority
		wantPlaced bool
	}{
		"one that outranks it":                             {priority: 20, group: makeGroup("gang", 2), members: 10},
		"one of its priority":                              {priority: 10, group: makeGroup("gang", 2), members: 10},
		"none that it outranks":                            {priority: 9, group: makeGroup("gang", 2), members: 10, wantPlaced: true},
		"one that outranks it, though not all its members": {priority: 15, group: makeGroup("gang", 2, ofClass("modest")), members: 30},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 3), nominee("node-0", "2", tc.priority), priorityClass("modest", 10, corev1.PreemptNever))...)
				w.start()
				w.eventually("the Pod waits", func() bool { return w.marked("nominee") == 1 })
				for _, object := range all(tc.group, makeMembers("gang", 2, ofPriority(tc.members), neverPreempts)) {
					w.create(object)
				}
				if tc.wantPlaced {
					w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
					return
				}
				got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				for _, want := range []string{"there is room for 0 of the 2 members that are needed; the others are short of 2 cpu", "1 Pods that are nominated"} {
					if !strings.Contains(got.Message, want) {
						t.Errorf("message %q, want one with %q", got.Message, want)
					}
				}
				if n := w.placed("gang"); n != 0 {
					t.Errorf("%d members are placed", n)
				}
			})
		})
	}
}

func neverPreempts(w *schedulertesting.PodWrapper) { w.PreemptionPolicy(corev1.PreemptNever) }

// TestAGangIsPackedBesideANomination: the large member and the two smaller ones fit on two
// nodes, in one way. On the first node, which suits them best, a Pod is nominated for the
// room. Nobody has to be evicted.
func TestAGangIsPackedBesideANomination(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		low := func(node, cores string) *corev1.Pod {
			return makePod("low-"+node, onNode(node), plusCores(cores))
		}
		w := newWorld(t, all(makeNodes("first", 1, 8), nominee("first-0", "6", 20),
			makeNodes("second", 1, 12), low("second-0", "8"), makeNodes("third", 1, 40), low("third-0", "35"),
			makePod("other", onNode("first-0"), plusCores("2")))...)
		w.start()
		w.eventually("the Pod waits", func() bool { return w.marked("nominee") == 1 })
		for _, object := range all(makeGroup("gang", 3), makePod("gang-0", inGroup("gang"), ofPriority(10), plusCores("2")),
			makePod("gang-1", inGroup("gang"), ofPriority(10), plusCores("1")), makePod("gang-2", inGroup("gang"), ofPriority(10), plusCores("1"))) {
			w.create(object)
		}
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 3 })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("victims %v", victims)
		}
	})
}

// TestAGangIsPlacedWhenANominationThatItOutranksEnds: one member of the gang outranks the nominated Pod, and the other one wants the
// Pod's host port.
func TestAGangIsPlacedWhenANominationThatItOutranksEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		port := func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }
		w := newWorld(t, all(makeNodes("node", 1, 8), makePod("victim", onNode("node-0"), plusCores("5")))...)
		w.lingers = true
		w.start()
		w.create(makePod("nominee", ofPriority(5), port, plusCores("5")))
		w.eventually("the Pod is nominated", func() bool { return len(w.engine().queue.Nominated()) == 1 })
		for _, object := range all(makeGroup("gang", 2), makePod("gang-0", inGroup("gang"), ofPriority(10)), makePod("gang-1", inGroup("gang"), ofPriority(0), port)) {
			w.create(object)
		}
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.finish("nominee")
		w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
	})
}

// TestAGangIsPlacedWhenANominationEnds, or the Pod is placed elsewhere.
func TestAGangIsPlacedWhenANominationEnds(t *testing.T) {
	tests := map[string]func(w *world){
		"as the Pod is deleted": func(w *world) { w.deletePod("nominee-of-node-0") },
		"as the Pod is placed elsewhere": func(w *world) {
			pod, err := w.kube.CoreV1().Pods(testNamespace).Get(w.t.Context(), "nominee-of-node-0", metav1.GetOptions{})
			if err != nil {
				w.t.Fatal(err)
			}
			pod.Spec.NodeName = "other-0"
			if _, err := w.kube.CoreV1().Pods(testNamespace).Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				w.t.Fatal(err)
			}
		},
	}
	for name, end := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 3), makeNodes("other", 1, 3), makePod("a", onNode("other-0"), plusCores("2"), ofPriority(20)),
					nominee("node-0", "2", 20), makeGroup("gang", 2), makeMembers("gang", 2, ofPriority(10)))...)
				w.start()
				got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				if !strings.Contains(got.Message, "nominated") {
					t.Fatalf("message %q, want that a Pod is nominated", got.Message)
				}
				begun := time.Now()
				end(w)
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
				if took := time.Since(begun); took > patience/2 {
					t.Errorf("it took %s, as nobody told the gang", took)
				}
			})
		})
	}
}
