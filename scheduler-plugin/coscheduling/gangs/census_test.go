// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestAGroupThatSomebodyWaitsFor is told of at once: some tools create no Pods before its phase
// says that they may. Others have time.
func TestAGroupThatSomebodyWaitsFor(t *testing.T) {
	key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
	for phase, want := range map[string]time.Duration{
		"": 0, dialect.PhasePending: 0, dialect.PhaseInqueue: incompleteReportDelay, dialect.PhaseRunning: incompleteReportDelay,
	} {
		b := newBench()
		group := &dialect.Group{Key: key, UID: "u", Asked: 2, Status: &dialect.Status{Phase: phase}}
		b.Gangs.SetGroup(group)
		if got := b.drained().report[key]; got != want {
			t.Errorf("phase %q: it is told of in %v, want %v", phase, got, want)
		}
		clear(b.drained().report)
		b.Gangs.SetGroup(group)
		if got, ok := b.drained().report[key]; !ok || got != want {
			t.Errorf("phase %q, when something else of it has changed: it is told of in %v, %t, want %v", phase, got, ok, want)
		}
	}
}
