// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// job is a job of so many nodes of one unit.
func job(name string, submit, runtime, limit time.Duration, nodes int) workload.Job {
	return workload.Job{Name: name, Submit: submit, Runtime: runtime, Limit: limit, Pods: nodes, Units: 1}
}

// Two of three nodes are busy for an hour. A job of three waits for them, and three small ones come after it.
var queue = []workload.Job{
	job("running", 0, time.Hour, time.Hour, 2),
	job("large", time.Minute, time.Hour, time.Hour, 3),
	job("short", 2*time.Minute, 30*time.Minute, 40*time.Minute, 1),
	job("long", 33*time.Minute, 2*time.Hour, 2*time.Hour, 1),
	job("understated", 34*time.Minute, 2*time.Hour, 5*time.Minute, 1),
}

func TestEachPolicyStartsJobsInItsOrder(t *testing.T) {
	const minute = time.Minute
	for _, tt := range []struct {
		policy Name
		why    string
		starts map[string]time.Duration
	}{
		{FIFO, "nobody overtakes", map[string]time.Duration{
			"large": 60 * minute, "short": 120 * minute, "long": 120 * minute, "understated": 120 * minute}},
		{Greedy, "the large job waits until nobody else fits", map[string]time.Duration{
			"short": 2 * minute, "long": 33 * minute, "understated": 60 * minute, "large": 180 * minute}},
		{EASY, "who says that it ends before the reservation begins may start, and is believed", map[string]time.Duration{
			"short": 2 * minute, "understated": 34 * minute, "large": 154 * minute, "long": 214 * minute}},
		{EASYTrue, "only who ends before the reservation begins may start", map[string]time.Duration{
			"short": 2 * minute, "large": 60 * minute, "long": 120 * minute, "understated": 120 * minute}},
	} {
		t.Run(string(tt.policy), func(t *testing.T) {
			runs := Play(tt.policy, queue, workload.Uniform(3, 1)).Runs
			if len(runs) != len(queue) {
				t.Errorf("%d of %d jobs ran", len(runs), len(queue))
			}
			for _, run := range runs {
				name := queue[run.Job].Name
				if want, ok := tt.starts[name]; ok && run.Start != want {
					t.Errorf("%s started after %s, want %s: %s", name, run.Start, want, tt.why)
				}
			}
		})
	}
}

// TestALongJobMayUseWhatTheReservationLeaves: of five nodes two will be left beside the reserved job, wherever the jobs run
// that end first.
func TestALongJobMayUseWhatTheReservationLeaves(t *testing.T) {
	short, long := job("short", 0, 5*time.Second, 5*time.Second, 2), job("long", 0, 1000*time.Second, 1000*time.Second, 3)
	for _, first := range [][]workload.Job{{short, long}, {long, short}} {
		jobs := append(first, job("reserved", 10*time.Second, 1000*time.Second, 1000*time.Second, 3), job("longer", 20*time.Second, 5000*time.Second, 5000*time.Second, 2))
		starts := map[string]time.Duration{}
		for _, run := range Play(EASY, jobs, workload.Uniform(5, 1)).Runs {
			starts[jobs[run.Job].Name] = run.Start
		}
		if got, ran := starts["longer"]; !ran || got != 20*time.Second {
			t.Errorf("after %s the longer job starts at %s (%t), want 20s", first[0].Name, got, ran)
		}
	}
}

func TestNoNodeHasMoreThanItsUnits(t *testing.T) {
	nodes := workload.Uniform(6, 8)
	jobs, _ := workload.Prepare(workload.Training(400, nodes, 1.1, 5), nodes)
	jobs = workload.Estimates(jobs, 3, 5)
	for _, name := range Names {
		outcome := Play(name, jobs, nodes)
		if len(outcome.Runs) != len(jobs) {
			t.Errorf("%s: %d of %d jobs ran", name, len(outcome.Runs), len(jobs))
		}
		for range 200 {
			at := time.Duration(rand.Int64N(int64(jobs[len(jobs)-1].Submit)))
			used := make([]int, len(nodes))
			for _, run := range outcome.Runs {
				if run.Start <= at && at < run.End {
					for _, node := range run.Nodes {
						used[node] += jobs[run.Job].Units
					}
				}
			}
			for node := range used {
				if used[node] > nodes[node] {
					t.Fatalf("%s: node %d has %d of %d units in use after %s", name, node, used[node], nodes[node], at)
				}
			}
		}
	}
}
