// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/place"
)

// TestMemberThatChangesItsLabel: a Pod that waits in a gang is moved to another,
// and one is taken out of its group.
func TestMemberThatChangesItsLabel(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 9), makeGroup("first", 3), makeMembers("first", 2), makeGroup("second", 1))...)
	w.start()
	w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
	w.relabel("first-0", map[string]string{schedulingv1alpha1.LabelPodGroup: "second"})
	w.eventually("the second gang is placed with it", func() bool { return w.placed("first-0") == 1 })
	w.condition("second", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)

	w.relabel("first-1", nil)
	w.eventually("the Pod without a group is scheduled as an ordinary one", func() bool { return w.placed("first-1") == 1 })
	w.create(makePod("first-2", inGroup("first")))
	w.eventually("the first gang has one member", func() bool {
		tracker := w.tracker()
		tracker.mu.RLock()
		defer tracker.mu.RUnlock()
		g := tracker.gangs[gangNamed("first")]
		return g != nil && len(g.members) == 1 && g.members["uid-first-2"] != nil
	})
}

// TestAMemberThatChangesItsRoleWhileItWaits: the gang lacks just that role, and then
// has it.
func TestAMemberThatChangesItsRoleWhileItWaits(t *testing.T) {
	b := newBench()
	b.setGroup(makeGroup("gang", 2, func(s *schedulingv1alpha1.PodGroupSpec) { s.MinRoleMember = map[string]int32{"ps": 1} }))
	worker := func(n int) *corev1.Pod { return makePod(fmt.Sprintf("gang-%d", n), inGroup("gang"), inRole("worker")) }
	b.add(makePod("gang-0", inGroup("gang"), inRole("ps")), worker(1))
	if view := b.turn(); view.Group == nil || view.ClassKeys[0] == view.ClassKeys[1] {
		t.Fatalf("classes %q; want the gang planned with a class for each role", view.ClassKeys)
	}
	b.setPod(worker(0))
	if got := b.toldWhy(gangName); b.isNext(gangName) || got != "2 of at least 2 members exist, 0 of at least 1 in role ps" {
		t.Errorf("the gang has a turn, or is told %q", got)
	}
	b.setPod(makePod("gang-1", inGroup("gang"), inRole("ps")))
	view := b.turn()
	if view.Group == nil || view.ClassKeys[0] != place.ClassKey(worker(0)) || view.ClassKeys[1] == view.ClassKeys[0] {
		t.Errorf("classes %q; want the gang planned with the roles of now", view.ClassKeys)
	}
}
