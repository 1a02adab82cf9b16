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

// MinimumOf returns the minimum of a PodGroup's spec. It shares the spec's map.
func MinimumOf(spec *schedulingv1alpha1.PodGroupSpec) Minimum {
	return Minimum{Members: spec.MinMember, Roles: spec.MinRoleMember}
}

// HeldBy reports whether the members in all tallies together are a quorum: they reach the minimum in all and the
// minimum of each role. Its time grows with the number of roles that have a minimum, not with the size of the tallies.
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

// AtMost returns the minimum, or the part of the minimum that the present members can hold: one at least.
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

// Holds reports whether members are a quorum: they reach minMember in all, and minRoleMember in each role.
func Holds(spec *schedulingv1alpha1.PodGroupSpec, members Tally) bool {
	return MinimumOf(spec).HeldBy(members)
}
