// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/cache"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestOwnersAreCountedOnceByState, however often their state is told, and not after they are gone.
func TestOwnersAreCountedOnceByState(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := newMetrics(registry, func() int { return 0 }, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	key := func(name string) cache.ObjectName { return cache.NewObjectName("ns", name) }
	frameworks, jobs := metrics.statesOf("Framework"), metrics.statesOf("Job")
	for range 2 {
		frameworks.set(key("a"), "Running")
		frameworks.set(key("b"), "Running")
		jobs.set(key("a"), "Running")
	}
	frameworks.set(key("b"), "Completed")
	frameworks.remove(key("a"))
	frameworks.remove(key("never seen"))
	metrics.count("Framework", []plan.Turn{
		{Kind: plan.AttemptCompleted, Code: "137", Type: "Failed"},
		{Kind: plan.AttemptCompleted, Task: true, Code: "137", Type: "Failed"},
	})
	want := `
# HELP lockstep_controller_owners Frameworks, and jobs of other kinds, by kind and state. Only the leader counts them.
# TYPE lockstep_controller_owners gauge
lockstep_controller_owners{kind="Framework",state="Completed"} 1
lockstep_controller_owners{kind="Framework",state="Running"} 0
lockstep_controller_owners{kind="Job",state="Running"} 1
# HELP lockstep_controller_attempts_completed_total Attempts that have ended, by completion code and type. A code that is none of those from -999 to 999 is Other.
# TYPE lockstep_controller_attempts_completed_total counter
lockstep_controller_attempts_completed_total{code="137",kind="Framework",level="owner",type="Failed"} 1
lockstep_controller_attempts_completed_total{code="137",kind="Framework",level="task",type="Failed"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "lockstep_controller_owners", "lockstep_controller_attempts_completed_total"); err != nil {
		t.Error(err)
	}
}
