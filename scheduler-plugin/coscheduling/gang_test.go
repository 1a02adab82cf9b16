// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// all joins lists of objects.
func all(lists ...any) []apiruntime.Object {
	var objects []apiruntime.Object
	for _, list := range lists {
		switch l := list.(type) {
		case []apiruntime.Object:
			objects = append(objects, l...)
		case apiruntime.Object:
			objects = append(objects, l)
		}
	}
	return objects
}

// TestGangIsPlacedWhole places a gang of which each case makes something
// difficult, and checks where its members are.
func TestGangIsPlacedWhole(t *testing.T) {
	const zone = corev1.LabelTopologyZone
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "gang"}}
	// perNode and perZone are how many members the nodes and zones hold, sorted.
	tests := map[string]struct {
		group       *schedulingv1alpha1.PodGroup
		objects     []apiruntime.Object
		members     []apiruntime.Object
		wantPerNode []int
		wantNodes   string // all members are on nodes whose name starts so
	}{
		"on one node": {
			members:     makeMembers("gang", 3),
			objects:     makeNodes("node", 1, 4),
			wantPerNode: []int{3},
		},
		"over several nodes": {
			members:     makeMembers("gang", 6),
			objects:     makeNodes("node", 3, 2),
			wantPerNode: []int{2, 2, 2},
		},
		"with members that repel each other from a node": {
			members: makeMembers("gang", 3, func(p *schedulertesting.PodWrapper) {
				p.PodAntiAffinity(corev1.LabelHostname, selector, schedulertesting.PodAntiAffinityWithRequiredReq)
			}),
			objects:     makeNodes("node", 3, 4),
			wantPerNode: []int{1, 1, 1},
		},
		"with members that repel each other from a zone": {
			members: makeMembers("gang", 2, func(p *schedulertesting.PodWrapper) {
				p.PodAntiAffinity(zone, selector, schedulertesting.PodAntiAffinityWithRequiredReq)
			}),
			objects:     all(makeNodes("a", 2, 4, zone+"=a"), makeNodes("b", 2, 4, zone+"=b")),
			wantPerNode: []int{1, 1},
		},
		"with members that want the same host port": {
			members:     makeMembers("gang", 3, func(p *schedulertesting.PodWrapper) { p.HostPort(8080) }),
			objects:     makeNodes("node", 3, 4),
			wantPerNode: []int{1, 1, 1},
		},
		"spread evenly over nodes": {
			members: makeMembers("gang", 4, func(p *schedulertesting.PodWrapper) {
				p.SpreadConstraint(1, corev1.LabelHostname, corev1.DoNotSchedule, selector, nil, nil, nil, nil)
			}),
			objects:     makeNodes("node", 4, 4),
			wantPerNode: []int{1, 1, 1, 1},
		},
		"in the zone that holds all members that attract each other": {
			members: makeMembers("gang", 4, func(p *schedulertesting.PodWrapper) {
				p.PodAffinity(zone, selector, schedulertesting.PodAffinityWithRequiredReq)
			}),
			objects:     all(makeNodes("a", 1, 3, zone+"=a"), makeNodes("b", 2, 2, zone+"=b")),
			wantPerNode: []int{2, 2},
			wantNodes:   "b-",
		},
		"on nodes whose taint it tolerates": {
			members: makeMembers("gang", 2, func(p *schedulertesting.PodWrapper) { p.Toleration("gpu") }),
			objects: []apiruntime.Object{
				schedulertesting.MakeNode().Name("node-tainted").Taints([]corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}).
					Capacity(map[corev1.ResourceName]string{corev1.ResourceCPU: "4"}).Obj(),
			},
			wantPerNode: []int{2},
		},
		"on nodes that its selector matches": {
			members:     makeMembers("gang", 2, selecting("disk", "ssd")),
			objects:     all(makeNodes("plain", 2, 4), makeNodes("fast", 1, 4, "disk=ssd")),
			wantPerNode: []int{2},
			wantNodes:   "fast-",
		},
		"in one rack, because its topology is Required": {
			group: makeGroup("gang", 4, func(s *schedulingv1alpha1.PodGroupSpec) {
				s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
			}),
			members:     makeMembers("gang", 4),
			objects:     all(makeNodes("a", 1, 3, "rack=a"), makeNodes("b", 2, 2, "rack=b"), makeNodes("c", 4, 2, "rack=c")),
			wantPerNode: []int{2, 2},
			wantNodes:   "b-", // the tightest
		},
		"with members of different size": {
			members: all(makeMembers("gang", 2), makePod("gang-big", inGroup("gang"), func(p *schedulertesting.PodWrapper) {
				p.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "2"}) // a second container
			})),
			objects:     all(makeNodes("small", 1, 2), makeNodes("large", 1, 3)),
			wantPerNode: []int{1, 2},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				if tc.group == nil {
					tc.group = makeGroup("gang", int32(len(tc.members)))
				}
				w := newWorld(t, all(tc.group, tc.objects, tc.members)...)
				w.start()
				w.eventually("all members are placed", func() bool { return w.placed("gang") == len(tc.members) })
				counts := make(map[string]int)
				for pod, node := range w.nodeOf() {
					if !strings.HasPrefix(node, tc.wantNodes) {
						t.Errorf("%s is on %s, want it on %s…", pod, node, tc.wantNodes)
					}
					counts[node]++
				}
				var perNode []int
				for _, n := range counts {
					perNode = append(perNode, n)
				}
				slices.Sort(perNode)
				if diff := cmp.Diff(tc.wantPerNode, perNode); diff != "" {
					t.Errorf("members on each node (-want, +got):\n%s", diff)
				}
				w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
			})
		})
	}
}

func TestIncompleteGangHoldsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("gang", 3), makeMembers("gang", 2), makePod("ordinary"))...)
		w.start()
		w.eventually("the ordinary Pod is placed", func() bool { return w.placed("ordinary") == 1 })
		got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		if want := "2 of at least 3 members exist"; got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		if n := w.placed("gang"); n != 0 {
			t.Errorf("%d members of an incomplete gang are placed", n)
		}
		w.create(makePod("gang-2", inGroup("gang")))
		w.eventually("the complete gang is placed", func() bool { return w.placed("gang") == 3 })
	})
}

func TestTwoGangsThatFitAloneDoNotBlockEachOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		first, second := makeMembers("first", 4), makeMembers("second", 4)
		var interleaved []apiruntime.Object
		for i := range first {
			interleaved = append(interleaved, first[i], second[i])
		}
		w := newWorld(t, all(makeNodes("node", 2, 3), makeGroup("first", 4), makeGroup("second", 4), interleaved)...)
		w.start()
		w.eventually("one gang is placed", func() bool { return w.placed("first") == 4 || w.placed("second") == 4 })
		placed, waiting := "first", "second"
		if w.placed("second") == 4 {
			placed, waiting = waiting, placed
		}
		got := w.condition(waiting, metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "there is room for 2 of the 4 members that are needed; the others are short of 2 cpu"; got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		if n := w.placed(waiting); n != 0 {
			t.Errorf("%d members of the gang that waits are placed", n)
		}
		w.eventually("the waiting members are marked for autoscalers", func() bool { return w.marked(waiting) == 4 })
		for _, i := range []string{"-0", "-1", "-2", "-3"} {
			w.deletePod(placed + i)
		}
		w.eventually("the other gang is placed", func() bool { return w.placed(waiting) == 4 })
		w.condition(waiting, metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
	})
}

func TestSurplusIsPlacedAsRoomAppears(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 3), makeGroup("gang", 2), makeMembers("gang", 5))...)
		w.start()
		w.eventually("the members that fit are placed", func() bool { return w.placed("gang") == 3 })
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.eventually("the surplus is marked for autoscalers", func() bool { return w.marked("gang") == 2 })
		for _, node := range makeNodes("new", 1, 2) {
			w.create(node)
		}
		w.eventually("the surplus is placed", func() bool { return w.placed("gang") == 5 })
	})
}

func TestRoleMinimaHoldBesideTheTotal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		group := makeGroup("gang", 2, func(s *schedulingv1alpha1.PodGroupSpec) { s.MinRoleMember = map[string]int32{"ps": 1} })
		w := newWorld(t, all(makeNodes("node", 1, 2), group, makeMembers("gang", 3, inRole("worker")))...)
		w.start()
		got := w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		if want := "3 of at least 2 members exist, 0 of at least 1 in role ps"; got.Message != want {
			t.Errorf("message %q, want %q", got.Message, want)
		}
		w.create(makePod("gang-ps", inGroup("gang"), inRole("ps")))
		w.eventually("the ps and one worker are placed", func() bool { return w.placed("gang-ps") == 1 && w.placed("gang") == 2 })
	})
}

func TestBoundAndSucceededMembersCount(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		members := makeMembers("gang", 4)
		members[0].(*corev1.Pod).Spec.NodeName = "b-0"
		members[1].(*corev1.Pod).Spec.NodeName = "b-0"
		members[1].(*corev1.Pod).Status.Phase = corev1.PodSucceeded
		group := makeGroup("gang", 4, func(s *schedulingv1alpha1.PodGroupSpec) {
			s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
		})
		w := newWorld(t, all(makeNodes("a", 1, 9, "rack=a"), makeNodes("b", 2, 2, "rack=b"), group, members)...)
		w.start()
		w.eventually("the rest is placed", func() bool { return w.placed("gang") == 4 })
		for pod, node := range w.nodeOf() {
			if !strings.HasPrefix(node, "b-") {
				t.Errorf("%s is on %s, but its gang is in rack b", pod, node)
			}
		}
	})
}

func TestSchedulerThatDiedBetweenBindsIsCompleted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), makeGroup("gang", 4), makeMembers("gang", 4))...)
		// The first scheduler gets two bindings through.
		bound := 0
		w.bindError = func(string) error {
			if bound == 2 {
				return apierrors.NewForbidden(corev1.Resource("pods"), "binding", errors.New("the process is gone"))
			}
			bound++
			return nil
		}
		stop := w.start()
		w.eventually("two members are bound", func() bool { return w.placed("gang") == 2 })
		stop()
		w.mu.Lock()
		w.bindError = nil
		w.mu.Unlock()
		w.start()
		w.eventually("the next scheduler binds the others", func() bool { return w.placed("gang") == 4 })
	})
}

func TestFailedBindIsRetried(t *testing.T) {
	tests := map[string]struct {
		failures int
		err      error
	}{
		"on the same node after a passing error": {
			failures: 2, err: apierrors.NewInternalError(errors.New("etcd has no leader")),
		},
		"by planning the member anew after a lasting one": {
			failures: 2, err: apierrors.NewForbidden(corev1.Resource("pods"), "binding", errors.New("not now")),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 2, 2), makeGroup("gang", 3), makeMembers("gang", 3))...)
				left := tc.failures
				w.bindError = func(pod string) error {
					if pod == "gang-1" && left > 0 {
						left--
						return tc.err
					}
					return nil
				}
				w.start()
				w.eventually("all members are bound", func() bool { return w.placed("gang") == 3 })
				w.mu.Lock()
				defer w.mu.Unlock()
				if len(w.bindings) != 3 {
					t.Errorf("bindings %v, want one for each member", w.bindings)
				}
			})
		})
	}
}

func TestReplacementThatFindsNoPlaceIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 2), makeMembers("gang", 2))...)
		w.start()
		w.condition("gang", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)
		w.deletePod("gang-1")
		w.create(makePod("big", func(p *schedulertesting.PodWrapper) { p.Node("node-0") }))
		w.eventually("the scheduler has seen that the node is full", func() bool {
			pods := w.sched.Cache.Dump().Nodes["node-0"].Pods
			return len(pods) == 2 && !slices.ContainsFunc(pods, func(p fwk.PodInfo) bool { return p.GetPod().Name == "gang-1" })
		})
		w.create(makePod("gang-2", inGroup("gang")))
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonPodDeleted)
	})
}

func TestMinMemberMayChangeWhileWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 3), makeMembers("gang", 3))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		groups := w.lock.SchedulingV1alpha1().PodGroups(testNamespace)
		group, err := groups.Get(t.Context(), "gang", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		group.Spec.MinMember, group.Generation = 2, group.Generation+1
		if _, err := groups.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the members that fit are placed", func() bool { return w.placed("gang") == 2 })
	})
}

func TestMissingCRDLeavesOrdinaryPodsAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeMembers("gang", 1), makePod("ordinary"))...)
		w.ownRefusal.Store(notThere(dialect.Own))
		w.start()
		w.eventually("the ordinary Pod is placed", func() bool { return w.placed("ordinary") == 1 })
		if n := w.placed("gang"); n != 0 {
			t.Errorf("%d Pods of a group that nobody knows are placed", n)
		}
	})
}

// TestAFailedListIsNoMissingCRD: while the API server can't list PodGroups, any Pod with the label may be a member of a
// gang, and is not taken from it.
func TestAFailedListIsNoMissingCRD(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeMembers("gang", 2, onNode("node-0")))...)
		w.ownRefusal.Store(apierrors.NewInternalError(errors.New("etcd has no leader")))
		w.start()
		w.create(makePod("ordinary", ofPriority(10)))
		w.eventually("the ordinary Pod has found no room", func() bool { return w.marked("ordinary") == 1 })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("victims %v", victims)
		}
	})
}

// TestOrdinaryPodsKeepTheirSignature: a plugin in the scheduling cycle that signs
// nothing would end the batching of all Pods. A member has no signature.
func TestOrdinaryPodsKeepTheirSignature(t *testing.T) {
	plugin := &Coscheduling{}
	if fragments, status := plugin.SignPod(t.Context(), makePod("ordinary")); !status.IsSuccess() || len(fragments) > 0 {
		t.Errorf("signature of an ordinary Pod: %v, %v; want nothing added", fragments, status)
	}
	if _, status := plugin.SignPod(t.Context(), makePod("member", inGroup("gang"))); status.IsSuccess() {
		t.Error("a member of a gang is signed, though it is not scheduled by itself")
	}
}
