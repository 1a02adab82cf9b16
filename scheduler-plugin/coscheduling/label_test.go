// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestMemberThatChangesItsLabel: a Pod that waits in a gang is moved to another,
// and one is taken out of its group.
func TestMemberThatChangesItsLabel(t *testing.T) {
	w := newWorld(t, all(makeNodes("node", 1, 9), makeGroup("first", 3), makeMembers("first", 2), makeGroup("second", 1))...)
	w.start()
	w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughTasks)
	relabel := func(name string, labels map[string]string) {
		t.Helper()
		pods := w.kube.CoreV1().Pods(testNamespace)
		pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pod.Labels = labels
		pod.ResourceVersion = name + fmt.Sprint(labels) // a scheduler ignores updates that change nothing
		if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	relabel("first-0", map[string]string{schedulingv1alpha1.LabelPodGroup: "second"})
	w.eventually("the second gang is placed with it", func() bool { return w.placed("first-0") == 1 })
	w.condition("second", metav1.ConditionFalse, schedulingv1alpha1.ReasonScheduled)

	relabel("first-1", nil)
	w.eventually("the Pod without a group is scheduled as an ordinary one", func() bool { return w.placed("first-1") == 1 })
	w.create(makePod("first-2", inGroup("first")))
	w.eventually("the first gang has one member", func() bool {
		members := w.known("first").Members
		return len(members) == 1 && members["uid-first-2"].Pod != nil
	})
}
