// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// maxTaskNumber is the largest taskNumber that the schema allows.
const maxTaskNumber = 10000

// CheckSpec refuses a spec that can't be decided on. The error names the field
// and what is legal.
func CheckSpec(spec *frameworkv1.FrameworkSpec) error {
	first := make(map[string]int, len(spec.TaskRoles))
	for i, role := range spec.TaskRoles {
		if role.TaskNumber < 0 || role.TaskNumber > maxTaskNumber {
			return fmt.Errorf("spec.taskRoles[%d].taskNumber must be from 0 to %d, is %d", i, maxTaskNumber, role.TaskNumber)
		}
		if j, taken := first[role.Name]; taken {
			return fmt.Errorf("spec.taskRoles[%d].name %q must be unique, and is that of spec.taskRoles[%d] too", i, role.Name, j)
		}
		first[role.Name] = i
	}
	return nil
}
