// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// roles are many roles of the same size.
func roles(number int, tasks int32) []frameworkv1.TaskRoleSpec {
	var all []frameworkv1.TaskRoleSpec
	for i := range number {
		all = append(all, role(fmt.Sprintf("r%d", i), tasks))
	}
	return all
}

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
		"more tasks in all than there may be": {
			roles: []frameworkv1.TaskRoleSpec{role("a", 6000), role("b", 0), role("c", 4001)},
			want:  "spec.taskRoles must have at most 10000 tasks in all, which is the sum of taskNumber, but have 10001",
		},
		"so many roles that their tasks can't be counted in 32 bits": {
			roles: roles(256, 10000),
			want:  "spec.taskRoles must have at most 10000 tasks in all, which is the sum of taskNumber, but have 2560000",
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
