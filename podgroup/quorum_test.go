// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

func TestHolds(t *testing.T) {
	tests := map[string]struct {
		spec    schedulingv1alpha1.PodGroupSpec
		members Tally
		want    bool
	}{
		"exactly minMember": {
			spec:    schedulingv1alpha1.PodGroupSpec{MinMember: 2},
			members: Tally{Total: 2},
			want:    true,
		},
		"one below minMember": {
			spec:    schedulingv1alpha1.PodGroupSpec{MinMember: 2},
			members: Tally{Total: 1},
			want:    false,
		},
		"both minMember and the role's minimum": {
			spec:    schedulingv1alpha1.PodGroupSpec{MinMember: 2, MinRoleMember: map[string]int32{"ps": 1}},
			members: Tally{Total: 2, Roles: map[string]int32{"ps": 1, "worker": 1}},
			want:    true,
		},
		"minMember without the role's minimum": {
			spec:    schedulingv1alpha1.PodGroupSpec{MinMember: 2, MinRoleMember: map[string]int32{"ps": 1}},
			members: Tally{Total: 5, Roles: map[string]int32{"worker": 5}},
			want:    false,
		},
		"the role's minimum without minMember": {
			spec:    schedulingv1alpha1.PodGroupSpec{MinMember: 3, MinRoleMember: map[string]int32{"ps": 1}},
			members: Tally{Total: 2, Roles: map[string]int32{"ps": 2}},
			want:    false,
		},
		"role minima that add up to more than minMember hold all the same": {
			spec:    schedulingv1alpha1.PodGroupSpec{MinMember: 1, MinRoleMember: map[string]int32{"ps": 2, "worker": 2}},
			members: Tally{Total: 3, Roles: map[string]int32{"ps": 2, "worker": 1}},
			want:    false,
		},
		"nobody": {
			spec: schedulingv1alpha1.PodGroupSpec{MinMember: 1},
			want: false,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Holds(&tc.spec, tc.members); got != tc.want {
				t.Errorf("Holds: got %v, want %v", got, tc.want)
			}
		})
	}
}
