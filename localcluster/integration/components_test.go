// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"testing"

	"github.com/lockstep-k8s/lockstep/localcluster/process"
	"github.com/lockstep-k8s/lockstep/localcluster/supervisor"
)

// componentPID returns the process of a component, or 0 while it has none that runs.
func componentPID(t *testing.T, c *local, name string) int {
	t.Helper()
	state, err := supervisor.ReadState(c.layout)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range state.Programs {
		if p.Name == name && p.State == process.Running {
			return p.PID
		}
	}
	return 0
}
