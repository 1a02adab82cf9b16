// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestSpecThatMakesNoSenseIsRefused(t *testing.T) {
	tests := map[string]struct {
		roles []frameworkv1.TaskRoleSpec
		want  string
	}{
		"a negative number of tasks": {
			roles: []frameworkv1.TaskRoleSpec{role("a", 1), role("b", -1)},
			want:  "spec.taskRoles[1].taskNumber must be from 0 to 10000, is -1",
		},
		"more tasks than there may be": {
			roles: []frameworkv1.TaskRoleSpec{role("a", 10001)},
			want:  "spec.taskRoles[0].taskNumber must be from 0 to 10000, is 10001",
		},
		"two roles of one name": {
			roles: []frameworkv1.TaskRoleSpec{role("a", 1), role("a", 2)},
			want:  `spec.taskRoles[1].name "a" must be unique, and is that of spec.taskRoles[0] too`,
		},
		"what is legal": {roles: []frameworkv1.TaskRoleSpec{role("a", 0), role("b", 10000)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := CheckSpec(&framework(tc.roles...).Spec); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected error (-want +got):\n%s", diff)
			}
		})
	}
}
