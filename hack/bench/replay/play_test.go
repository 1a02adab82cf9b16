// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"os"
	"path/filepath"
	"testing"
)

func TestATraceGetsAsManyNodesAsItsLoadNeeds(t *testing.T) {
	trace := filepath.Join(t.TempDir(), "jobs.csv")
	// 20 units for an hour each, within two hours: ten units at a time.
	const jobs = "at,seconds,gpus\n2026-01-01 00:00:00,3600,16\n2026-01-01 02:00:00,3600,4\n"
	if err := os.WriteFile(trace, []byte(jobs), 0o600); err != nil {
		t.Fatal(err)
	}
	for load, want := range map[float64]int{1: 1, 0.5: 3, 0.25: 5} {
		got, err := nodesFor(trace, "submit=at,runtime=seconds,units=gpus", 8, load)
		if err != nil || got != want {
			t.Errorf("load %v: %d nodes, %v; want %d", load, got, err, want)
		}
	}
}
