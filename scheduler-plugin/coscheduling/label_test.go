// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestMemberThatChangesItsLabel: a Pod that waits in a gang is moved to another,
// and one is taken out of its group.
func TestMemberThatChangesItsLabel(t *testing.T) {
	inBubble(t, func(t *testing.T) {
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
			members := w.known("first").Members
			return len(members) == 1 && members["uid-first-2"].Pod != nil
		})
	})
}
