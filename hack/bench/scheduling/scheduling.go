// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scheduling measures how fast gangs are placed.
package scheduling

import "github.com/lockstep-k8s/lockstep/hack/bench/harness"

// Cases are the measurements of the scheduler.
func Cases() []harness.Case {
	return nil
}
