// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Holds says whether so many members are a quorum: minMember in all and
// minRoleMember of each role.
func Holds(spec *schedulingv1alpha1.PodGroupSpec, members Tally) bool {
	if members.Total < spec.MinMember {
		return false
	}
	for role, least := range spec.MinRoleMember {
		if members.Roles[role] < least {
			return false
		}
	}
	return true
}
