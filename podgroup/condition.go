// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Condition returns the group's condition of a type, nil if it has none. The value is part of the group, so it is read
// only.
func Condition(group *schedulingv1alpha1.PodGroup, conditionType string) *schedulingv1alpha1.PodGroupCondition {
	i := slices.IndexFunc(group.Status.Conditions, func(c schedulingv1alpha1.PodGroupCondition) bool {
		return c.Type == conditionType
	})
	if i < 0 {
		return nil
	}
	return &group.Status.Conditions[i]
}
