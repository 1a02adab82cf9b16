// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package lifecycle measures what it costs that Pods are tasks of Frameworks.
package lifecycle

import "github.com/lockstep-k8s/lockstep/hack/bench/harness"

// Cases are the measurements of the controller.
func Cases() []harness.Case {
	return nil
}
