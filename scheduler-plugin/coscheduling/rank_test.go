// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/line"
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
			enter := func(group *schedulingv1alpha1.PodGroup, options []podOption) {
				options = append([]podOption{inGroup(group.Name)}, options...)
				b.setGroup(group)
				b.add(makePod(group.Name+"-0", options...), makePod(group.Name+"-1", options...))
			}
			enter(tc.second, tc.secondPods)
			enter(tc.first, tc.firstPods)
			var turns []string
			for view := b.turn(); view.Group != nil; view = b.turn() {
				turns = append(turns, view.Key.Name)
				b.fail(view.Key, view.Group.UID, line.Refusal{Message: "no room"}, time.Second, time.Second)
			}
			if diff := cmp.Diff([]string{tc.first.Name, tc.second.Name}, turns); diff != "" {
				t.Errorf("turns (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestAPriorityClassThatComesGivesItsGangAnotherPlaceInLine.
func TestAPriorityClassThatComesGivesItsGangAnotherPlaceInLine(t *testing.T) {
	b := newBench()
	exists := false
	b.classPriority = func(string) (int32, bool) { return 10, exists }
	b.setGroup(bornAt(1, makeGroup("older", 1, ofClass("low"))))
	b.setGroup(bornAt(2, makeGroup("younger", 1)))
	b.add(makePod("older-0", inGroup("older"), ofPriority(100)), makePod("younger-0", inGroup("younger"), ofPriority(100)))
	if !b.isNext(gangNamed("older")) {
		t.Error("the older gang is not ahead")
	}
	exists = true
	b.rerank()
	if !b.isNext(gangNamed("younger")) {
		t.Error("the older gang is ahead, though its class is lower now")
	}
}

// TestAGangHasNoTurnBeforeOrdinaryPodsOfHigherPriority: the bell rang for another one.
func TestAGangHasNoTurnBeforeOrdinaryPodsOfHigherPriority(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("gang", 1))
	b.add(makePod("gang-0", inGroup("gang"), ofPriority(5)))
	if _, ok := b.begin(6, b.time); ok {
		t.Error("the gang has a turn that rang for a higher priority")
	}
	if _, ok := b.begin(5, b.time); !ok {
		t.Error("the gang has no turn")
	}
}
