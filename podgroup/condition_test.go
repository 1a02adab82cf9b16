// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestConditionIsFoundByItsType(t *testing.T) {
	group := &schedulingv1alpha1.PodGroup{Status: schedulingv1alpha1.PodGroupStatus{
		Conditions: []schedulingv1alpha1.PodGroupCondition{
			{Type: schedulingv1alpha1.ConditionScheduled, Status: metav1.ConditionFalse},
			{Type: schedulingv1alpha1.ConditionUnschedulable, Status: metav1.ConditionTrue},
		},
	}}
	if got := Condition(group, schedulingv1alpha1.ConditionUnschedulable); got != &group.Status.Conditions[1] {
		t.Errorf("got %v, want the second condition", got)
	}
	if got := Condition(group, "Else"); got != nil {
		t.Errorf("got %v, want none", got)
	}
}
