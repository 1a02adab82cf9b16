// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func byPods(s *schedulingv1alpha1.PodGroupSpec) { s.DisruptionMode = schedulingv1alpha1.DisruptPod }

func startedAgo(d time.Duration) podOption {
	return func(w *schedulertesting.PodWrapper) { w.StartTime(metav1.NewTime(time.Now().Add(-d))) }
}

func wholeNode(w *schedulertesting.PodWrapper) {
	w.Req(map[corev1.ResourceName]string{corev1.ResourceCPU: "1"}) // a second container
}

func priorityClass(name string, value int32, policy corev1.PreemptionPolicy) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value, PreemptionPolicy: &policy}
}

// classThatRuns is a class whose work is to run for a time before it is preempted.
func classThatRuns(name, seconds string) *schedulingv1.PriorityClass {
	class := priorityClass(name, 0, corev1.PreemptLowerPriority)
	class.Annotations = map[string]string{schedulingv1alpha1.AnnotationMinRuntime: seconds}
	return class
}

func podOfClass(name string) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Spec.PriorityClassName = name }
}

// TestGangPreempts: the gang "high" of priority 10 arrives on a full cluster.
func TestGangPreempts(t *testing.T) {
	high := func(n int, options ...podOption) []apiruntime.Object {
		return makeMembers("high", n, append([]podOption{ofPriority(10)}, options...)...)
	}
	tests := map[string]struct {
		objects     []apiruntime.Object // with those that run
		high        []apiruntime.Object // group and members; default: a group of all members
		wantVictims []string
	}{
		"only as many single Pods as it needs": {
			objects: all(makeNodes("node", 1, 4), makePod("a", onNode("node-0"), startedAgo(time.Hour)),
				makePod("b", onNode("node-0"), startedAgo(time.Minute)), makePod("c", onNode("node-0"), startedAgo(time.Second))),
			high:        high(3),
			wantVictims: []string{"b", "c"},
		},
		"work that has run for less than its class is to run last": {
			objects: all(makeNodes("node", 1, 2), classThatRuns("batch", "600"),
				makePod("young", onNode("node-0"), startedAgo(time.Minute), podOfClass("batch")), makePod("old", onNode("node-0"), startedAgo(time.Hour), podOfClass("batch"))),
			high:        high(1),
			wantVictims: []string{"old"},
		},
		"but it does if nothing else is enough": {
			objects: all(makeNodes("node", 1, 2), classThatRuns("batch", "600"),
				makePod("young", onNode("node-0"), startedAgo(time.Minute), podOfClass("batch")), makePod("old", onNode("node-0"), startedAgo(time.Hour), podOfClass("batch"))),
			high:        high(2),
			wantVictims: []string{"old", "young"},
		},
		"and a time that is no number does not count": {
			objects: all(makeNodes("node", 1, 2), classThatRuns("batch", "10m"),
				makePod("young", onNode("node-0"), startedAgo(time.Minute), podOfClass("batch")), makePod("old", onNode("node-0"), startedAgo(time.Hour), podOfClass("batch"))),
			high:        high(1),
			wantVictims: []string{"young"},
		},
		"a lower gang as a whole": {
			objects: all(makeNodes("node", 2, 2), makeGroup("low", 3), makeMembers("low", 3, onNode("node-0")),
				makePod("other", onNode("node-1"), ofPriority(10))),
			high:        high(2),
			wantVictims: []string{"low-0", "low-1", "low-2"},
		},
		"a Pod that has the gang's label and is none of it": {
			objects:     all(makeNodes("node", 1, 2), makePod("stray", onNode("node-0"), inGroup("high"))),
			high:        all(groupOf("this", "high", 2), high(2, of("this"))),
			wantVictims: []string{"stray"},
		},
		"a lower gang as a whole, though a stranger names it, too": {
			objects: all(makeNodes("node", 1, 3), groupOf("this", "low", 2), makeMembers("low", 2, onNode("node-0"), of("this"), startedAgo(time.Minute)),
				makePod("stray", onNode("node-0"), inGroup("low"), startedAgo(time.Hour))),
			high:        high(1),
			wantVictims: []string{"low-0", "low-1"},
		},
		"only the surplus of a lower gang": {
			objects: all(makeNodes("node", 1, 4), makeGroup("low", 2), makeMembers("low", 4, onNode("node-0"))),
			high:    high(2),
			// The last ones: they are as young as the others.
			wantVictims: []string{"low-2", "low-3"},
		},
		"the surplus member that is in the way, though it has run the longest": {
			objects: all(makeNodes("node", 1, 2), makeNodes("gpu", 1, 2, "gpu=yes"), makeGroup("low", 3),
				makePod("low-0", inGroup("low"), onNode("gpu-0"), startedAgo(3*time.Hour)), makePod("low-1", inGroup("low"), onNode("gpu-0"), startedAgo(2*time.Hour)),
				makePod("low-2", inGroup("low"), onNode("node-0"), startedAgo(time.Hour)), makePod("low-3", inGroup("low"), onNode("node-0"), startedAgo(time.Minute))),
			high:        high(1, func(w *schedulertesting.PodWrapper) { w.NodeSelector(map[string]string{"gpu": "yes"}) }),
			wantVictims: []string{"low-1"},
		},
		"members one by one of a gang that says so": {
			objects:     all(makeNodes("node", 1, 3), makeGroup("low", 3, byPods), makeMembers("low", 3, onNode("node-0"))),
			high:        high(1),
			wantVictims: []string{"low-0"},
		},
		"the work that is the shortest underway": {
			objects: all(makeNodes("node", 1, 4), makeGroup("old", 2), makeMembers("old", 2, onNode("node-0"), startedAgo(2*time.Hour)),
				makeGroup("new", 2), makeMembers("new", 2, onNode("node-0"), startedAgo(time.Hour))),
			high:        high(2),
			wantVictims: []string{"new-0", "new-1"},
		},
		"in the rack where the least work is lost": {
			objects: all(makeNodes("a", 2, 1, "rack=a"), makeNodes("b", 1, 2, "rack=b"),
				makePod("a0", onNode("a-0"), startedAgo(40*time.Minute)), makePod("a1", onNode("a-1"), startedAgo(40*time.Minute)),
				makePod("b0", onNode("b-0"), startedAgo(time.Hour))),
			high: all(makeGroup("high", 2, func(s *schedulingv1alpha1.PodGroupSpec) {
				s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
			}), high(2)),
			wantVictims: []string{"b0"},
		},
		"whole nodes where its members need them": {
			objects: all(makeNodes("node", 2, 2), makePod("a0", onNode("node-0")), makePod("a1", onNode("node-0"), startedAgo(time.Hour)),
				makePod("b0", onNode("node-1")), makePod("b1", onNode("node-1"), startedAgo(time.Minute))),
			high:        high(1, wholeNode),
			wantVictims: []string{"b0", "b1"},
		},
		"those whom no PodDisruptionBudget protects": {
			objects: all(makeNodes("node", 1, 2), makePod("protected", onNode("node-0"), func(w *schedulertesting.PodWrapper) { w.Label("app", "db") }),
				makePod("other", onNode("node-0"), ofPriority(5)),
				&policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "db"},
					Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}},
				}),
			high:        high(1),
			wantVictims: []string{"other"},
		},
		"those that repel it, though there is room beside them": {
			objects: all(makeNodes("node", 1, 9), makePod("repels", onNode("node-0"), func(w *schedulertesting.PodWrapper) {
				w.PodAntiAffinity(corev1.LabelHostname, &metav1.LabelSelector{MatchLabels: map[string]string{schedulingv1alpha1.LabelPodGroup: "high"}},
					schedulertesting.PodAntiAffinityWithRequiredReq)
			}), makePod("harmless", onNode("node-0"), startedAgo(time.Hour))),
			high:        high(2),
			wantVictims: []string{"repels"},
		},
		"not one that was told to end an hour ago, and does not": {
			objects: all(makeNodes("node", 2, 1), makePod("stuck", onNode("node-0"), endingSince(time.Hour)),
				makePod("other", onNode("node-1"), startedAgo(time.Hour))),
			high:        high(1),
			wantVictims: []string{"other"},
		},
		"by its PriorityClass, if its members have no lower priority": {
			objects: all(makeNodes("node", 1, 2), makePod("a", onNode("node-0"), ofPriority(50)), makePod("b", onNode("node-0"), ofPriority(200)),
				priorityClass("urgent", 100, corev1.PreemptLowerPriority)),
			high:        all(makeGroup("high", 1, ofClass("urgent")), makeMembers("high", 1, ofPriority(300))),
			wantVictims: []string{"a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				if _, ok := tc.high[0].(*schedulingv1alpha1.PodGroup); !ok {
					tc.high = all(makeGroup("high", int32(len(tc.high))), tc.high)
				}
				w := newWorld(t, all(tc.objects, tc.high)...)
				w.start()
				w.eventually("the gang is placed", func() bool { return w.placed("high") == len(tc.high)-1 })
				if diff := cmp.Diff(tc.wantVictims, w.victims()); diff != "" {
					t.Errorf("victims (-want, +got):\n%s", diff)
				}
			})
		})
	}
}

// TestGangDoesNotPreempt: nothing is evicted in vain, or against the rules.
func TestGangDoesNotPreempt(t *testing.T) {
	tests := map[string]struct {
		objects []apiruntime.Object
	}{
		"if it would not fit all the same": {
			all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makeGroup("high", 3), makeMembers("high", 3, ofPriority(10))),
		},
		"those of its own priority": {
			all(makeNodes("node", 1, 2), makePod("a", onNode("node-0"), ofPriority(10)), makeGroup("high", 2), makeMembers("high", 2, ofPriority(10))),
		},
		"if a member's preemptionPolicy is Never": {
			all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makeGroup("high", 2),
				makeMembers("high", 2, ofPriority(10), func(w *schedulertesting.PodWrapper) { w.PreemptionPolicy(corev1.PreemptNever) })),
		},
		"if its PriorityClass says Never": {
			all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), priorityClass("polite", 10, corev1.PreemptNever),
				makeGroup("high", 2, ofClass("polite")), makeMembers("high", 2, ofPriority(10))),
		},
		"if room in one rack would have to be made in two": {
			all(makeNodes("r", 1, 1, "rack=r"), makeNodes("s", 1, 1, "rack=s"), makePod("a", onNode("r-0")), makePod("b", onNode("s-0")),
				makeGroup("high", 2, func(s *schedulingv1alpha1.PodGroupSpec) {
					s.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
				}), makeMembers("high", 2, ofPriority(10))),
		},
		"for members above its minimum": {
			all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makeGroup("high", 1), makeMembers("high", 3, ofPriority(10))),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, tc.objects...)
				w.start()
				w.eventually("the gang has been planned in vain", func() bool { return w.marked("high") > 0 })
				if victims := w.victims(); len(victims) > 0 {
					t.Errorf("victims %v", victims)
				}
			})
		})
	}
}

// TestRoomIsHeldWhileVictimsEnd: neither a gang behind nor an ordinary Pod of
// lower priority takes the room that one victim has left while another ends.
func TestRoomIsHeldWhileVictimsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.lingers = true
		w.start()
		w.eventually("the victims are ending", func() bool { return len(w.victims()) == 2 })
		got := w.condition("high", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "2 Pods of lower priority are preempted for it"; !strings.Contains(got.Message, want) {
			t.Errorf("message %q, want one with %q", got.Message, want)
		}
		w.finish("a")
		w.create(makePod("ordinary", ofPriority(9)))
		w.create(makeGroup("low", 1))
		w.create(makePod("low-0", inGroup("low"), ofPriority(9)))
		w.eventually("the others have found no room", func() bool { return w.marked("ordinary") == 1 && w.marked("low") == 1 })
		got = w.condition("low", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		if want := "resources are reserved for PodGroup ns/high, which is ahead"; !strings.Contains(got.Message, want) {
			t.Errorf("message %q, want one with %q", got.Message, want)
		}
		w.finish("b")
		w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
		if n := w.placed("ordinary") + w.placed("low"); n != 0 {
			t.Errorf("%d others took room that was made for the gang", n)
		}
		if diff := cmp.Diff([]string{"a", "b"}, w.victims()); diff != "" {
			t.Errorf("victims (-want, +got):\n%s", diff)
		}
	})
}

// TestRoomOfPodsThatEndAnywayIsKept from others of lower priority that keep coming. They
// may be the victims of a scheduler that is gone.
func TestRoomOfPodsThatEndAnywayIsKept(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0"), endingSince(0)), makePod("b", onNode("node-0"), endingSince(0)),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.start()
		w.eventually("the gang has found no room", func() bool { return w.marked("high") == 2 })
		w.finish("a")
		w.create(makePod("low"))
		w.eventually("the Pod of low priority has found no room", func() bool { return w.marked("low") == 1 })
		w.finish("b")
		w.eventually("the gang is placed", func() bool { return w.placed("high") == 2 })
		if n := w.placed("low"); n != 0 {
			t.Error("the Pod of low priority has taken room that the gang waited for")
		}
	})
}

// TestAGangWaitsForItsOwnMembersToEnd rather than have others evicted.
func TestAGangWaitsForItsOwnMembersToEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 3), makePod("low", onNode("node-0")), makeGroup("high", 2),
			makePod("high-0", onNode("node-0"), inGroup("high"), ofPriority(10)),
			makePod("high-1", onNode("node-0"), inGroup("high"), ofPriority(10), endingSince(0)),
			makePod("high-2", inGroup("high"), ofPriority(10)))...)
		w.start()
		w.eventually("the gang has been planned in vain", func() bool { return w.marked("high") == 1 })
		w.finish("high-1")
		w.eventually("the gang is placed", func() bool { return w.nodeOf()["high-2"] != "" })
		if victims := w.victims(); len(victims) > 0 {
			t.Errorf("victims %v", victims)
		}
	})
}

// endingSince makes a Pod one that was told to end a while ago.
func endingSince(d time.Duration) podOption {
	return func(w *schedulertesting.PodWrapper) {
		at := metav1.NewTime(time.Now().Add(-d))
		w.DeletionTimestamp = &at
		w.Finalizers = []string{"tests/stays"}
	}
}

// TestHeldRoomIsGivenBack: if the gang is deleted while its victims end, an
// ordinary Pod uses the room.
func TestHeldRoomIsGivenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0")), makePod("b", onNode("node-0")),
			makeGroup("high", 2), makeMembers("high", 2, ofPriority(10)))...)
		w.lingers = true
		w.start()
		w.eventually("the victims are ending", func() bool { return len(w.victims()) == 2 })
		w.finish("a")
		w.create(makePod("ordinary"))
		w.eventually("the Pod finds no room", func() bool { return w.marked("ordinary") == 1 })
		if err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Delete(t.Context(), "high", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("it is placed when the gang is gone", func() bool { return w.placed("ordinary") == 1 })
	})
}

// TestOrdinaryPodAndGangMembers: an ordinary Pod that outranks a gang takes the
// whole of it, and one that does not takes none.
func TestOrdinaryPodAndGangMembers(t *testing.T) {
	tests := map[string]struct {
		group       *schedulingv1alpha1.PodGroup
		highest     int32 // priority of one of its three members
		wantVictims []string
	}{
		"it outranks the gang and takes the whole": {
			group:       makeGroup("low", 3),
			wantVictims: []string{"low-0", "low-1", "low-2"},
		},
		"it outranks the members, but not all, and so not the gang": {
			group:   makeGroup("low", 3, ofClass("urgent")),
			highest: 100,
		},
		"it outranks the members, though not the class of their gang": {
			group:       makeGroup("low", 3, ofClass("urgent")),
			wantVictims: []string{"low-0", "low-1", "low-2"},
		},
		"it takes one of a gang that says so": {
			group:       makeGroup("low", 3, byPods),
			wantVictims: []string{"one"},
		},
		"it takes one that the gang can spare": {
			group:       makeGroup("low", 2),
			wantVictims: []string{"one"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(makeNodes("node", 1, 3), tc.group, makeMembers("low", 2, onNode("node-0")),
					makePod("low-2", inGroup("low"), onNode("node-0"), ofPriority(tc.highest)), priorityClass("urgent", 100, corev1.PreemptLowerPriority), makePod("ordinary", ofPriority(50)))...)
				w.start()
				if len(tc.wantVictims) == 0 {
					w.eventually("the Pod has found no room", func() bool { return w.marked("ordinary") == 1 })
				} else {
					w.eventually("the Pod is placed", func() bool { return w.placed("ordinary") == 1 })
					w.eventually("all victims are gone", func() bool { return len(w.victims()) == len(tc.wantVictims) })
				}
				got := w.victims()
				if len(tc.wantVictims) == 1 && len(got) == 1 {
					return // any of them
				}
				if diff := cmp.Diff(tc.wantVictims, got); diff != "" && len(tc.wantVictims)+len(got) > 0 {
					t.Errorf("victims (-want, +got):\n%s", diff)
				}
			})
		})
	}
}

// TestAnOrdinaryPodTakesSmallPodsBeforeAWholeGang: one member is less than two Pods, and
// its gang is more.
func TestAnOrdinaryPodTakesSmallPodsBeforeAWholeGang(t *testing.T) {
	protected := func(w *schedulertesting.PodWrapper) { w.Label("app", "train") }
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: testNamespace, Name: "train"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}},
	}
	tests := map[string]struct {
		objects []apiruntime.Object
		want    []string
	}{
		"on another node": {
			objects: all(makeNodes("gang", 3, 2), makeNodes("pods", 1, 2), makeGroup("low", 3),
				makePod("low-0", inGroup("low"), wholeNode, onNode("gang-0")), makePod("low-1", inGroup("low"), wholeNode, onNode("gang-1")),
				makePod("low-2", inGroup("low"), wholeNode, onNode("gang-2")),
				makePod("a", onNode("pods-0")), makePod("b", onNode("pods-0"))),
			want: []string{"a", "b"},
		},
		"on the same node": {
			objects: all(makeNodes("node", 1, 4), makeNodes("other", 2, 2), makeGroup("low", 3),
				makePod("low-0", inGroup("low"), wholeNode, onNode("node-0"), startedAgo(time.Minute)),
				makePod("low-1", inGroup("low"), wholeNode, onNode("other-0"), startedAgo(time.Minute)),
				makePod("low-2", inGroup("low"), wholeNode, onNode("other-1"), startedAgo(time.Minute)),
				makePod("a", onNode("node-0"), startedAgo(time.Hour)), makePod("b", onNode("node-0"), startedAgo(time.Hour))),
			want: []string{"a", "b"},
		},
		"that are dearer but for the budget of the gang's other members": {
			objects: all(makeNodes("gang", 2, 2), makeNodes("pods", 1, 2), makeGroup("low", 2), budget,
				makePod("low-0", inGroup("low"), wholeNode, onNode("gang-0")),
				makePod("low-1", inGroup("low"), wholeNode, onNode("gang-1"), protected),
				makePod("a", onNode("pods-0"), ofPriority(20)), makePod("b", onNode("pods-0"), ofPriority(20))),
			want: []string{"a", "b"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, all(tc.objects, makePod("ordinary", wholeNode, ofPriority(50)))...)
				w.start()
				w.eventually("the Pod is placed", func() bool { return w.placed("ordinary") == 1 })
				if diff := cmp.Diff(tc.want, w.victims()); diff != "" {
					t.Errorf("victims (-want, +got):\n%s", diff)
				}
			})
		})
	}
}

// TestMembersOfDifferentPriorities: a gang ranks as its highest member, also for
// preemption.
func TestMembersOfDifferentPriorities(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("a", onNode("node-0"), ofPriority(5)), makePod("b", onNode("node-0"), ofPriority(5)),
			makeGroup("mixed", 2), makePod("mixed-0", inGroup("mixed"), ofPriority(1)), makePod("mixed-1", inGroup("mixed"), ofPriority(10)))...)
		w.start()
		w.eventually("the gang is placed, by the highest of its priorities", func() bool { return w.placed("mixed") == 2 })
		if diff := cmp.Diff([]string{"a", "b"}, w.victims()); diff != "" {
			t.Errorf("victims (-want, +got):\n%s", diff)
		}
	})
}

// TestLowGangThatIsWokenFirstDoesNotStarveTheHigh: the room that the preempted
// gang leaves is not given back to it, over and over.
func TestLowGangThatIsWokenFirstDoesNotStarveTheHigh(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 4), makeGroup("low", 4), makeMembers("low", 4, onNode("node-0")))...)
		w.start()
		w.create(makeGroup("high", 3))
		for i := range 3 {
			w.create(makePod(fmt.Sprintf("high-%d", i), inGroup("high"), ofPriority(10)))
			// Its controller replaces each victim at once.
			w.create(makePod(fmt.Sprintf("low-again-%d", i), inGroup("low")))
		}
		w.eventually("the higher gang is placed", func() bool { return w.placed("high") == 3 })
	})
}

// TestAGangTakesThePlaceOfOneThatItOutranksOnlyNow: a PriorityClass comes that is worth less than
// the members of the gang that names it.
func TestAGangTakesThePlaceOfOneThatItOutranksOnlyNow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 1),
			makeGroup("low", 1, func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = "modest" }), makeMembers("low", 1, onNode("node-0"), ofPriority(20)),
			makeGroup("high", 1), makeMembers("high", 1, ofPriority(10)))...)
		w.start()
		w.condition("high", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.create(priorityClass("modest", 5, corev1.PreemptLowerPriority))
		w.eventually("the other one has its place", func() bool { return w.placed("high") == 1 })
	})
}

// TestNoMoreIsTakenThanPortsNeed has a gang whose members ask for a host port that Pods hold, on nodes with room for all
// that is asked for. Those that hold it have run the longest, so that all others are cheaper.
func TestNoMoreIsTakenThanPortsNeed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const members, perNode = 30, 6
		port := func(w *schedulertesting.PodWrapper) { w.HostPort(80) }
		objects := makeNodes("node", members+10, 64)
		for n := range members + 10 {
			node := onNode(fmt.Sprintf("node-%d", n))
			for p := range perNode {
				objects = append(objects, makePod(fmt.Sprintf("young-%d-%d", n, p), node, startedAgo(time.Duration(1+n+p)*time.Minute)))
			}
			objects = append(objects, makePod(fmt.Sprintf("old-%d", n), node, port, startedAgo(time.Duration(100+n)*time.Hour)))
		}
		w := newWorld(t, all(objects, makeGroup("high", members), makeMembers("high", members, ofPriority(10), port))...)
		w.start()
		w.eventually("the gang has its place", func() bool { return w.placed("high") == members })
		for _, victim := range w.victims() {
			if !strings.HasPrefix(victim, "old-") {
				t.Errorf("%s was evicted, though it holds no port", victim)
			}
		}
		if got := len(w.victims()); got != members {
			t.Errorf("%d Pods were evicted, want %d", got, members)
		}
	})
}

// TestTheDearestIsNotTakenWhereAPortIsInTheWay has a gang that may be in rack a, where Pods of the lowest priority are in
// its way, one by its port, or in rack b, where one of a higher priority is. That one is spared.
func TestTheDearestIsNotTakenWhereAPortIsInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		port := func(w *schedulertesting.PodWrapper) { w.HostPort(80) }
		inOneRack := func(spec *schedulingv1alpha1.PodGroupSpec) {
			spec.Topology = []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}}
		}
		w := newWorld(t, all(makeNodes("a", 1, 2, "rack=a"), makeNodes("b", 1, 1, "rack=b"),
			makePod("young", onNode("a-0"), startedAgo(time.Minute)), makePod("old", onNode("a-0"), port, startedAgo(time.Hour)),
			makePod("dear", onNode("b-0"), ofPriority(5)),
			makeGroup("high", 1, inOneRack), makeMembers("high", 1, ofPriority(10), port))...)
		w.start()
		w.eventually("the gang has its place", func() bool { return w.placed("high") == 1 })
		if diff := cmp.Diff([]string{"old"}, w.victims()); diff != "" {
			t.Errorf("victims (-want, +got):\n%s", diff)
		}
	})
}

// TestVictimsOfAGangAheadMakeRoomForItAlone, while they are still ending: a gang that also outranks others evicts more.
func TestVictimsOfAGangAheadMakeRoomForItAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 2, 2), makePod("low-0", onNode("node-0"), wholeNode), makePod("low-1", onNode("node-1"), wholeNode),
			makeGroup("high", 1), makePod("high-0", inGroup("high"), wholeNode, ofPriority(100)))...)
		w.lingers = true
		w.start()
		w.eventually("one Pod is evicted", func() bool { return len(w.victims()) == 1 })
		w.create(makeGroup("middle", 1))
		w.create(makePod("middle-0", inGroup("middle"), wholeNode, ofPriority(50)))
		w.eventually("the other Pod is evicted, too", func() bool { return len(w.victims()) == 2 })
		w.finish("low-0", "low-1")
		w.eventually("both gangs are placed", func() bool { return w.placed("high") == 1 && w.placed("middle") == 1 })
	})
}
