// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// expectedStart returns when a group is expected to start, as its status has it.
func (w *world) expectedStart(name string) *schedulingv1alpha1.ExpectedStart {
	w.t.Helper()
	group, err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return group.Status.ExpectedStart
}

// TestAGroupThatWaitsIsToldWhenItStarts, and is not told again while that stays so.
func TestAGroupThatWaitsIsToldWhenItStarts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("waits", 1, runsFor(3600))), makeMembers("waits", 1, wholeNode),
			makeGroup("runs", 1, runsFor(36000)), makePod("runs-0", inGroup("runs"), onNode("node-0")))...)
		began := time.Now()
		w.start()
		told := func() *schedulingv1alpha1.ExpectedStart { return w.expectedStart("waits") }
		w.eventually("the group knows when it starts", func() bool { return told() != nil })
		// The Pod has no time of its start, so it counts as begun now.
		if probable := told().Probable.Sub(began); probable < 10*time.Hour || probable > 10*time.Hour+5*time.Minute || !told().Latest.IsZero() {
			t.Errorf("it is to start in %s, and at %s at the latest, want 10h and nothing", probable, told().Latest)
		}
		if message := w.condition("waits", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources).Message; strings.Contains(message, "start by") {
			t.Errorf("the condition says %q", message)
		}
		writes := w.patches("podgroups")
		time.Sleep(30 * time.Minute)
		if more := w.patches("podgroups") - writes; more > 2 {
			t.Errorf("in half an hour its status was written %d times more, though nothing has happened", more)
		}
	})
}

// TestAStartThatBecomesUnknownIsTakenBack: nobody knows for how long the Pod runs that has got the node.
func TestAStartThatBecomesUnknownIsTakenBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("waits", 1, runsFor(3600))), makeMembers("waits", 1, wholeNode),
			makeGroup("runs", 1, runsFor(36000)), makePod("runs-0", inGroup("runs"), onNode("node-0")))...)
		w.start()
		w.eventually("the group knows when it starts", func() bool { return w.expectedStart("waits") != nil })
		w.create(makePod("unknown", onNode("node-0")))
		w.deletePod("runs-0")
		w.eventually("the group has no expected start", func() bool { return w.expectedStart("waits") == nil })
	})
}
