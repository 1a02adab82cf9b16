// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package figures

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// Two nodes of two units. "a" has one unit from 0 to 100 s. "b", of both nodes, is created at 0 and starts at 100 s. "c" is created at 100 s and
// starts at 150 s.
func TestFiguresAreThoseOfTheirDefinitions(t *testing.T) {
	nodes := workload.Uniform(2, 2)
	jobs := []workload.Job{
		{Name: "a", Runtime: 100 * time.Second, Pods: 1, Units: 1},
		{Name: "b", Runtime: 50 * time.Second, Pods: 2, Units: 2},
		{Name: "c", Submit: 100 * time.Second, Runtime: 10 * time.Second, Pods: 1, Units: 2},
	}
	outcome := workload.Outcome{Policy: "p", Held: map[string]float64{workload.InTime: 20}, Runs: []workload.Run{
		{Job: 0, Start: 0, End: 100 * time.Second, Nodes: []int{0}},
		{Job: 1, Start: 100 * time.Second, End: 150 * time.Second, Nodes: []int{0, 1}},
		{Job: 2, Start: 150 * time.Second, End: 160 * time.Second, Nodes: []int{1}},
	}}
	got := Of(outcome, jobs, nodes, Bounds{1, 2})
	want := Figures{Policy: "p", Jobs: 3, Makespan: 160,
		GAR:      0.25, // one of four units until the last job is created
		SOR:      0.25, // "b" waits all that time
		GFR:      0.5,  // one of two nodes is used in part
		Held:     map[string]float64{workload.InTime: 0.05},
		Slowdown: (1 + 3.0 + 6.0) / 3,
		Classes: []Class{
			{Name: "1", Jobs: 1},
			{Name: "2", Jobs: 1, P50: 50, P90: 50, P99: 50, Max: 50},
			{Name: "> 2", Jobs: 1, P50: 100, P90: 100, P99: 100, Max: 100},
		}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9), cmpopts.IgnoreFields(Figures{}, "Occupied")); diff != "" {
		t.Errorf("figures (-want,+got):\n%s", diff)
	}
	for i, part := range got.Occupied {
		if math.Abs(part-0.25) > 1e-6 {
			t.Fatalf("in part %d of the time %.3f of the units were in use, want a quarter", i, part)
		}
	}
}

func TestAJobThatNeverStartsWaitsForEver(t *testing.T) {
	jobs := []workload.Job{{Name: "a", Runtime: time.Second, Pods: 1, Units: 1}}
	got := Of(workload.Outcome{}, jobs, workload.Uniform(1, 1), Bounds{1})
	if got.Unfinished != 1 || !math.IsInf(float64(got.Classes[0].Max), 1) {
		t.Errorf("got %d unfinished jobs, and a wait of %g s, want one and an infinite one", got.Unfinished, got.Classes[0].Max)
	}
	if data, err := json.Marshal(got); err != nil || !strings.Contains(string(data), `"max":null`) {
		t.Errorf("in JSON: %s, %v", data, err)
	}
}

func TestTheMedianIsThatOfEachFigure(t *testing.T) {
	got := Median([]Figures{
		{Policy: "p", SOR: 0.9, Classes: []Class{{Name: "1", Jobs: 3, P99: 10}, {Name: "> 1", Jobs: 1, P99: 7}}},
		{Policy: "p", SOR: 0.5, Classes: []Class{{Name: "1", Jobs: 5, P99: 30}}},
		{Policy: "p", SOR: 0.7, Classes: []Class{{Name: "1", Jobs: 4, P99: 20}}},
	})
	want := Figures{Policy: "p", SOR: 0.7, Classes: []Class{{Name: "1", Jobs: 4, P99: 20}, {Name: "> 1", Jobs: 1, P99: 7}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("medians (-want,+got):\n%s", diff)
	}
}
