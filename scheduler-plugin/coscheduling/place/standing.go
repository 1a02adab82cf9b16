// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import "github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"

// Standing is a gang that has members placed, and what can be taken of it.
type Standing gangs.Standing

// whole says whether the gang has its minimum.
func (s *Standing) whole() bool {
	return s.Group.HeldBy(s.Placed)
}
