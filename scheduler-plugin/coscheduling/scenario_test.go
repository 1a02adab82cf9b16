// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestTwoGangsThatArriveInterleaved: in both orders one is placed whole and the
// other not at all, and that one follows when the first ends.
func TestTwoGangsThatArriveInterleaved(t *testing.T) {
	for name, order := range map[string][2]string{
		"alpha first": {"alpha", "beta"},
		"beta first":  {"beta", "alpha"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				w := newWorld(t, makeNodes("node", 2, 3)...)
				w.start()
				w.create(makeGroup("alpha", 4))
				w.create(makeGroup("beta", 4))
				for i := range 4 {
					for _, group := range order {
						w.create(makePod(fmt.Sprintf("%s-%d", group, i), inGroup(group)))
					}
				}
				w.eventually("one gang is placed", func() bool { return w.placed("alpha") == 4 || w.placed("beta") == 4 })
				first, second := "alpha", "beta"
				if w.placed("beta") == 4 {
					first, second = second, first
				}
				w.condition(second, metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				if n := w.placed(second); n != 0 {
					t.Errorf("%d members of the gang that waits are placed", n)
				}
				for i := range 4 {
					w.deletePod(fmt.Sprintf("%s-%d", first, i))
				}
				w.eventually("the other follows", func() bool { return w.placed(second) == 4 })
			})
		})
	}
}

// TestGangWhosePodsArriveOverTime holds nothing until it is complete.
func TestGangWhosePodsArriveOverTime(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 3), makeGroup("slow", 3))...)
		w.start()
		for i := range 3 {
			w.create(makePod(fmt.Sprintf("slow-%d", i), inGroup("slow")))
			if i == 2 {
				break
			}
			// Others use all of the room meanwhile.
			quick := fmt.Sprintf("quick%d", i)
			w.create(makeGroup(quick, 3))
			for _, pod := range makeMembers(quick, 3) {
				w.create(pod)
			}
			w.eventually("a gang that came later is placed", func() bool { return w.placed(quick) == 3 })
			for m := range 3 {
				w.deletePod(fmt.Sprintf("%s-%d", quick, m))
			}
		}
		w.eventually("the gang is placed once it is complete", func() bool { return w.placed("slow") == 3 })
	})
}

// TestRoomThatAppears: by a new node, and by a Pod that goes.
func TestRoomThatAppears(t *testing.T) {
	for name, appear := range map[string]func(w *world){
		"by a node that is added": func(w *world) {
			for _, node := range makeNodes("new", 1, 2) {
				w.create(node)
			}
		},
		"by Pods that are deleted": func(w *world) {
			w.deletePod("other-0")
			w.deletePod("other-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				others := []apiruntime.Object{makePod("other-0", onNode("node-0")), makePod("other-1", onNode("node-0"))}
				w := newWorld(t, all(makeNodes("node", 1, 2), others, makeGroup("gang", 2), makeMembers("gang", 2))...)
				w.start()
				w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				appear(w)
				w.eventually("the gang is placed", func() bool { return w.placed("gang") == 2 })
			})
		})
	}
}

// TestMinMemberRaisedAndLoweredWhileWaiting: what counts is what it says now.
func TestMinMemberRaisedAndLoweredWhileWaiting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makeGroup("gang", 3), makeMembers("gang", 4))...)
		w.start()
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		setMin := func(n int32) {
			t.Helper()
			groups := w.lock.SchedulingV1alpha1().PodGroups(testNamespace)
			group, err := groups.Get(t.Context(), "gang", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			group.Spec.MinMember, group.Generation = n, group.Generation+1
			if _, err := groups.Update(t.Context(), group, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		setMin(5)
		w.condition("gang", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
		setMin(2)
		w.eventually("the members that fit are placed", func() bool { return w.placed("gang") == 2 })
	})
}
