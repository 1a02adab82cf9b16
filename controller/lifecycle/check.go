// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// CheckSpec returns an error if a spec is invalid. The error names the field and the legal values. The CRD refuses such
// a spec too, unless the installed CRD is older than this program.
func CheckSpec(spec *frameworkv1.FrameworkSpec) error {
	total := 0
	first := make(map[string]int, len(spec.TaskRoles))
	for i, role := range spec.TaskRoles {
		if role.TaskNumber < 0 || role.TaskNumber > frameworkv1.MaxTasks {
			return fmt.Errorf("spec.taskRoles[%d].taskNumber must be from 0 to %d, is %d", i, frameworkv1.MaxTasks, role.TaskNumber)
		}
		if j, taken := first[role.Name]; taken {
			return fmt.Errorf("spec.taskRoles[%d].name %q must be unique, and is that of spec.taskRoles[%d] too", i, role.Name, j)
		}
		first[role.Name] = i
		total += int(role.TaskNumber)
	}
	if total > frameworkv1.MaxTasks {
		return fmt.Errorf("spec.taskRoles must have at most %d tasks in all, which is the sum of taskNumber, but have %d",
			frameworkv1.MaxTasks, total)
	}
	return nil
}
