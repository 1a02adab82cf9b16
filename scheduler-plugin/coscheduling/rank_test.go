// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func ofPriority(priority int32) podOption {
	return func(w *schedulertesting.PodWrapper) { w.Priority(priority) }
}

func ofClass(name string) func(*schedulingv1alpha1.PodGroupSpec) {
	return func(s *schedulingv1alpha1.PodGroupSpec) { s.PriorityClassName = name }
}

// bornAt has a PodGroup created so many seconds into the year.
func bornAt(seconds int, group *schedulingv1alpha1.PodGroup) *schedulingv1alpha1.PodGroup {
	group.CreationTimestamp = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, seconds, 0, time.UTC))
	return group
}

func TestGangsTakeTheirTurnsInOrder(t *testing.T) {
	tests := map[string]struct {
		first, second *schedulingv1alpha1.PodGroup
		firstPods     []podOption
		secondPods    []podOption
	}{
		"the one whose PriorityClass is higher goes first": {
			first:      bornAt(9, makeGroup("first", 2, ofClass("high"))),
			second:     bornAt(1, makeGroup("second", 2, ofClass("low"))),
			firstPods:  []podOption{ofPriority(4000)},
			secondPods: []podOption{ofPriority(5000)}, // the group's class counts, not its Pods'
		},
		"a class above the members' priority gives no more than they have": {
			first:      bornAt(9, makeGroup("first", 2)),
			second:     bornAt(1, makeGroup("second", 2, ofClass("high"))),
			firstPods:  []podOption{ofPriority(500)},
			secondPods: []podOption{ofPriority(499)},
		},
		"without a class the highest priority among the members counts": {
			first:     bornAt(9, makeGroup("first", 2)),
			second:    bornAt(1, makeGroup("second", 2)),
			firstPods: []podOption{ofPriority(7)},
		},
		"a class that does not exist is the same as none": {
			first:     bornAt(9, makeGroup("first", 2, ofClass("no-such"))),
			second:    bornAt(1, makeGroup("second", 2)),
			firstPods: []podOption{ofPriority(7)},
		},
		"of equal priority the older group goes first": {
			first:  bornAt(1, makeGroup("zeta", 2)),
			second: bornAt(2, makeGroup("alpha", 2)),
		},
		"of equal age the name decides": {
			first:  bornAt(1, makeGroup("alpha", 2)),
			second: bornAt(1, makeGroup("zeta", 2)),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.classPriority = func(name string) (int32, bool) {
				value, ok := map[string]int32{"high": 1000, "low": 10}[name]
				return value, ok
			}
			enter := func(group *schedulingv1alpha1.PodGroup, options []podOption) (leader *corev1.Pod) {
				options = append([]podOption{inGroup(group.Name)}, options...)
				leader = makePod(group.Name+"-0", options...)
				b.setGroup(group)
				b.add(leader, makePod(group.Name+"-1", options...))
				return leader
			}
			secondLeader := enter(tc.second, tc.secondPods)
			firstLeader := enter(tc.first, tc.firstPods)
			view, what := b.next(secondLeader)
			if view.key.Name != tc.first.Name || what != turnYield {
				t.Fatalf("turn %v goes to %s, want it to yield to %s", what, view.key.Name, tc.first.Name)
			}
			// It has had its turn: the next one is the other's.
			if view, what := b.next(secondLeader); view.key.Name != tc.second.Name || what != turnPlan {
				t.Errorf("turn %v goes to %s, want %s planned", what, view.key.Name, tc.second.Name)
			}
			if _, what := b.next(firstLeader); what != turnOver {
				t.Errorf("a gang is planned again (%v) though nothing happened", what)
			}
		})
	}
}

// TestHigherGangInBackOffIsNotOvertaken: an event wakes both gangs, and the back-off
// of the one ahead does not give its room away.
func TestHigherGangInBackOffIsNotOvertaken(t *testing.T) {
	b := newBench()
	high, low := makeGroup("high", 1), makeGroup("low", 1)
	highLeader, lowLeader := makePod("high-0", inGroup("high"), ofPriority(9)), makePod("low-0", inGroup("low"))
	b.setGroup(high)
	b.add(highLeader)
	view, _ := b.next(highLeader)
	b.fail(view.key, high.UID, shortfall{message: "no room"}, time.Minute, time.Minute)
	b.setGroup(low)
	b.add(lowLeader)
	if view, what := b.next(lowLeader); view.key.Name != "low" || what != turnPlan {
		t.Fatalf("turn %v goes to %s, want low: nothing has happened that may help high", what, view.key.Name)
	}
	b.fail(types.NamespacedName{Namespace: testNamespace, Name: "low"}, low.UID, shortfall{message: "no room"}, 0, 0)
	b.somethingHappens()
	if view, what := b.next(lowLeader); view.key.Name != "high" || what != turnYield {
		t.Errorf("turn %v goes to %s, want it to yield to high", what, view.key.Name)
	}
}

// TestAGangAheadDoesNotTakeEachTurn: a gang that never fits is woken by each event.
// It is tried before its back-off is over, but not at each event: the turns are those
// of the gangs behind it.
func TestAGangAheadDoesNotTakeEachTurn(t *testing.T) {
	const initial, longest = time.Second, 8 * time.Second
	b := newBench()
	high, low := makeGroup("high", 1), makeGroup("low", 1)
	highLeader, lowLeader := makePod("high-0", inGroup("high"), ofPriority(9)), makePod("low-0", inGroup("low"))
	b.setGroup(high)
	b.add(highLeader)
	b.setGroup(low)
	b.add(lowLeader)
	// turns is who has a turn when it is low's, until low has had its own.
	turns := func() (turns []string) {
		for range 10 {
			view, what := b.next(lowLeader)
			turns = append(turns, view.key.Name)
			if what != turnYield {
				return turns
			}
			b.fail(view.key, high.UID, shortfall{message: "no room"}, initial, longest)
		}
		return turns
	}
	lowFinds := func() { b.fail(gangNamed("low"), low.UID, shortfall{message: "no room"}, 0, 0) }
	want := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, turns()); diff != "" {
			t.Errorf("turns %s (-want, +got):\n%s", when, diff)
		}
		lowFinds()
	}
	want("of two new gangs", "high", "low")
	b.somethingHappens()
	want("after the first event", "high", "low")
	for range 20 {
		b.time = b.time.Add(initial / 50)
		b.somethingHappens()
		want("after an event that follows soon", "low")
	}
	b.time = b.time.Add(initial)
	b.awaken(gangNamed("low"))
	want("after the initial back-off, of a gang that an event has woken", "high", "low")
	b.awaken(gangNamed("low"))
	want("without an event", "low")
}
