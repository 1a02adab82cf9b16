// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestWitnessThatHasGrown: two equal gangs have no room. The first, which the second
// has learned from, grows, and has none again. Then there is room for what it was.
func TestWitnessThatHasGrown(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode),
		makeGroup("first", 1), makeMembers("first", 1, wholeNode), makeGroup("second", 1), makeMembers("second", 1, wholeNode))...)
	w.start()
	w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
	w.condition("second", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)

	for _, member := range makeMembers("first", 2, wholeNode)[1:] {
		w.create(member)
	}
	grown := makeGroup("first", 2)
	grown.Generation = 2
	if _, err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Update(t.Context(), grown, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.eventually("the first gang has failed as what it is now", func() bool {
		tracker := w.tracker()
		tracker.mu.RLock()
		defer tracker.mu.RUnlock()
		return strings.Contains(tracker.gangs[gangNamed("first")].attempt.message, "of the 2 members")
	})
	w.create(makeNodes("new", 1, 2)[0])
	w.eventually("the second gang is placed", func() bool { return w.placed("second") == 1 })
}
