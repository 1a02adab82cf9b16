// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// Minimum is how many members of a group are to be placed together.
type Minimum struct {
	// Members is how many there are to be in all.
	Members int32
	// Roles is how many of a role are to be among them, beside Members. Callers do not change it.
	Roles map[string]int32
}

// MinimumOf is the minimum that the spec of a PodGroup asks for. It shares the spec's map.
func MinimumOf(spec *schedulingv1alpha1.PodGroupSpec) Minimum {
	return Minimum{Members: spec.MinMember, Roles: spec.MinRoleMember}
}

// HeldBy says whether the members of some tallies together are a quorum, by the minimum in all and that of each role. It takes as
// long as the minimum has roles, however many the tallies have.
func (m Minimum) HeldBy(members ...Tally) bool {
	var total int32
	for _, some := range members {
		total += some.Total
	}
	if total < m.Members {
		return false
	}
	for role, least := range m.Roles {
		for _, some := range members {
			least -= some.Roles[role]
		}
		if least > 0 {
			return false
		}
	}
	return true
}

// AtMost is the minimum, or the part of the minimum that the present members can hold: one at least.
func (m Minimum) AtMost(there Tally) Minimum {
	least := Minimum{Members: min(m.Members, max(1, there.Total))}
	for role, n := range m.Roles {
		if n = min(n, there.Roles[role]); n > 0 {
			if least.Roles == nil {
				least.Roles = make(map[string]int32, len(m.Roles))
			}
			least.Roles[role] = n
		}
	}
	return least
}

// Holds says whether members are a quorum, by minMember in all and
// minRoleMember of each role.
func Holds(spec *schedulingv1alpha1.PodGroupSpec, members Tally) bool {
	return MinimumOf(spec).HeldBy(members)
}
