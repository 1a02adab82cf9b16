// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/internal/replay/policy"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

func TestTheSchedulerPlacesEachJobWholeAndNoNodeHasMoreThanItsUnits(t *testing.T) {
	nodes := workload.Uniform(4, 8)
	jobs, _ := workload.Prepare(workload.Training(60, nodes, 0.9, 2), nodes)
	outcome, err := Play(t, jobs, nodes, Options{Name: "lockstep", Args: DefaultArgs(false)})
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Runs) != len(jobs) || outcome.PartTime != 0 {
		t.Fatalf("%d of %d jobs ran, and gangs were in part for %s", len(outcome.Runs), len(jobs), outcome.PartTime)
	}
	for _, run := range outcome.Runs {
		if run.Start < jobs[run.Job].Submit || run.End != run.Start+jobs[run.Job].Runtime {
			t.Errorf("%s was created after %s, and ran from %s to %s", jobs[run.Job].Name, jobs[run.Job].Submit, run.Start, run.End)
		}
		used := map[int]int{}
		for _, other := range outcome.Runs {
			if other.Start <= run.Start && run.Start < other.End {
				for _, node := range other.Nodes {
					used[node] += jobs[other.Job].Units
				}
			}
		}
		for node, units := range used {
			if units > nodes[node] {
				t.Fatalf("node %d has %d of %d units in use after %s", node, units, nodes[node], run.Start)
			}
		}
	}
}

func TestTheSameWorkloadIsPlayedInVirtualTime(t *testing.T) {
	jobs := []workload.Job{
		{Name: "a", Runtime: 6 * time.Hour, Pods: 1, Units: 8},
		{Name: "b", Submit: time.Hour, Runtime: time.Minute, Pods: 1, Units: 8},
	}
	outcome, err := Play(t, jobs, workload.Uniform(1, 8), Options{Name: "lockstep", Args: DefaultArgs(false)})
	if err != nil {
		t.Fatal(err)
	}
	if wait := outcome.Runs[1].Start - jobs[0].Runtime; wait < 0 || wait > 11*time.Second {
		t.Errorf("the second job started %s after the end of the first, want it within the longest back-off", wait)
	}
}

// TestUnitsThatAreReservedAndFreeAreCounted: the second job needs both nodes, so the free node is reserved for it while
// the first job runs, from the second hour to the sixth. The third job would run for too long to use that node.
func TestUnitsThatAreReservedAndFreeAreCounted(t *testing.T) {
	jobs := []workload.Job{
		{Name: "a", Runtime: 6 * time.Hour, Limit: 6 * time.Hour, Pods: 1, Units: 8},
		{Name: "b", Submit: time.Hour, Runtime: time.Hour, Limit: time.Hour, Pods: 2, Units: 8},
		{Name: "c", Submit: 2 * time.Hour, Runtime: 8 * time.Hour, Limit: 8 * time.Hour, Pods: 1, Units: 8},
		{Name: "short", Submit: 3 * time.Hour, Runtime: 2 * time.Hour, Limit: 2 * time.Hour, Pods: 1, Units: 4},
		{Name: "d", Submit: 12 * time.Hour, Runtime: time.Hour, Limit: time.Hour, Pods: 1, Units: 8},
	}
	nodes := workload.Uniform(2, 8)
	outcome, err := Play(t, jobs, nodes, Options{Name: "lockstep", Args: DefaultArgs(false)})
	if err != nil {
		t.Fatal(err)
	}
	model := policy.Play(policy.EASY, jobs, nodes)
	// A short job uses four of the units for two of the hours.
	want := (8*5 - 4*2) * time.Hour.Seconds()
	if got := model.Held[workload.InTime]; got != want {
		t.Errorf("%g unit-seconds are held with the model, want %g", got, want)
	}
	if got := outcome.Held[workload.InTime]; len(outcome.Held) != 1 || math.Abs(got-want) > 8*3*60 {
		t.Errorf("%v unit-seconds are held, want %g, give or take three minutes", outcome.Held, want)
	}
}

// TestAJobThatIsPreemptedIsCreatedAgain: the first job runs longer than its estimate on a node that the second one waits
// for, and the administrator allows to preempt such work.
func TestAJobThatIsPreemptedIsCreatedAgain(t *testing.T) {
	jobs := []workload.Job{
		{Name: "overrun", Runtime: 6 * time.Hour, Limit: time.Hour, Pods: 1, Units: 8},
		{Name: "large", Submit: 10 * time.Minute, Runtime: time.Hour, Limit: time.Hour, Pods: 2, Units: 8},
	}
	args := strings.Replace(DefaultArgs(false), "{", `{"backfill":{"preemptOverrun":true},`, 1)
	ended := 0
	outcome, err := Play(t, jobs, workload.Uniform(2, 8), Options{Name: "lockstep", Args: args, Ended: func() { ended++ }})
	if err != nil || len(outcome.Runs) != 3 || ended != 2 {
		t.Fatalf("%d jobs ended, and the runs are %+v (%v), want three of them", ended, outcome.Runs, err)
	}
	for i, want := range []workload.Run{{Job: 0, Preempted: true}, {Job: 1}, {Job: 0}} {
		if got := outcome.Runs[i]; got.Job != want.Job || got.Preempted != want.Preempted || !got.Preempted && got.End != got.Start+jobs[got.Job].Runtime {
			t.Errorf("run %d is %+v, want %+v", i, got, want)
		}
	}
	if first, second := outcome.Runs[0].End, outcome.Runs[1].Start; first < time.Hour || first > 3*time.Hour || second < first || second > first+11*time.Second {
		t.Errorf("the job that overruns its estimate of an hour is preempted after %s, and the large one starts after %s", first, second)
	}
}

func TestANodeHoldsAsManyPodsAsItHasUnits(t *testing.T) {
	var jobs []workload.Job
	for i := range 128 {
		jobs = append(jobs, workload.Job{Name: strconv.Itoa(i), Runtime: time.Hour, Pods: 1, Units: 1})
	}
	outcome, err := Play(t, jobs, workload.Uniform(1, 128), Options{Name: "lockstep", Args: DefaultArgs(false)})
	if err != nil {
		t.Fatal(err)
	}
	if len(outcome.Runs) != len(jobs) {
		t.Errorf("%d of %d jobs ran", len(outcome.Runs), len(jobs))
	}
	for _, run := range outcome.Runs {
		if run.Start > time.Minute {
			t.Errorf("job %s starts after %s, although a unit is free", jobs[run.Job].Name, run.Start)
		}
	}
}

func TestAnOwnerMayHaveAnyName(t *testing.T) {
	jobs := []workload.Job{
		{Name: "a", Owner: "Lab / 7", Runtime: time.Minute, Pods: 2, Units: 8},
		{Name: "b", Owner: "lab?7#", Runtime: time.Minute, Pods: 1, Units: 1},
	}
	outcome, err := Play(t, jobs, workload.Uniform(3, 8), Options{Name: "lockstep", Args: DefaultArgs(false)})
	if err != nil || len(outcome.Runs) != len(jobs) {
		t.Errorf("%d of %d jobs ran (%v)", len(outcome.Runs), len(jobs), err)
	}
}
