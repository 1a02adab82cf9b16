// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestReason(t *testing.T) {
	tests := map[string]struct{ reason, want string }{
		"one of the scheduler's own":  {schedulingv1alpha1.ReasonNotEnoughResources, "NotEnoughResources"},
		"all that is allowed":         {"a1_,:Z", "a1_,:Z"},
		"none":                        {"", "Unknown"},
		"a sentence":                  {"no room, try again", "noroom,tryagain"},
		"an error of something else":  {"404: not found!", "notfound"},
		"a list that ends in a comma": {"A,B,:", "A,B"},
		"nothing but signs":           {" ,:-_1!", "Unknown"},
		"other letters":               {"Zurückgewiesen", "Zurckgewiesen"},
		"the longest":                 {strings.Repeat("a", 1024), strings.Repeat("a", 1024)},
		"one that is too long":        {strings.Repeat("a", 1023) + ",b", strings.Repeat("a", 1023)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := Reason(tc.reason)
			if got != tc.want {
				t.Errorf("Reason(%q): got %q, want %q", tc.reason, got, tc.want)
			}
			condition := metav1.Condition{Type: "GangScheduled", Status: metav1.ConditionFalse, Reason: got, LastTransitionTime: metav1.Now()}
			if errs := metav1validation.ValidateCondition(condition, field.NewPath("condition")); len(errs) > 0 {
				t.Errorf("Kubernetes refuses it: %v", errs.ToAggregate())
			}
		})
	}
}
