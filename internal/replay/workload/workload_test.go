// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAStandardWorkloadIsRead(t *testing.T) {
	const file = `; MaxNodes: 4
; MaxProcs: 64
; Note: jobs 3 and 4 were cancelled before they ran, and job 2 ran in two parts
 1 100 5 3600 32 -1 -1 32 7200 -1 1 7 1 -1 1 -1 -1 -1
 2 160 0 60 4 -1 -1 -1 -1 -1 1 -1 1 -1 1 -1 -1 -1
 3 170 0 -1 4 -1 -1 4 60 -1 5 7 1 -1 1 -1 -1 -1
 4 180 9 0 -1 -1 -1 4 60 -1 5 7 1 -1 1 -1 -1 -1
 2 160 0 20 4 -1 -1 -1 -1 -1 2 -1 1 -1 1 -1 -1 -1
 2 160 0 40 4 -1 -1 -1 -1 -1 3 -1 1 -1 1 -1 -1 -1
`
	trace, err := ReadSWF(strings.NewReader(file), 0)
	if err != nil {
		t.Fatal(err)
	}
	want := Trace{Nodes: 4, Units: 16, Skipped: 2, Jobs: []Job{
		{Name: "1", Owner: "u7", Submit: 100 * time.Second, Runtime: time.Hour, Limit: 2 * time.Hour, Pods: 2, Units: 16},
		{Name: "2", Submit: 160 * time.Second, Runtime: time.Minute, Pods: 1, Units: 4},
	}}
	if diff := cmp.Diff(want, trace); diff != "" {
		t.Errorf("the trace (-want,+got):\n%s", diff)
	}
}

// TestTheMachineHasAllProcessorsOfTheHeader: some of the nodes are not for jobs.
func TestTheMachineHasAllProcessorsOfTheHeader(t *testing.T) {
	for header, want := range map[string]Trace{
		"; MaxNodes: 338\n":                                       {Nodes: 338, Units: 1},
		"; MaxNodes: 1,152\n; MaxProcs: 0009,216\n":               {Nodes: 1152, Units: 8},
		"; MaxProcs: 64\n":                                        {Nodes: 64, Units: 1},
		"; MaxNodes: 1024 (of four processors)\n; MaxProcs: 4008": {Nodes: 1002, Units: 4},
		"; MaxNodes: 430\n; MaxProcs: 338 (for batch jobs)":       {Nodes: 338, Units: 1},
	} {
		got, err := ReadSWF(strings.NewReader(header), 0)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("header %q: %v; the trace (-want,+got):\n%s", header, err, diff)
		}
	}
}

func TestACSVFileIsRead(t *testing.T) {
	const file = "start,seconds,gpus,team\n2017-10-09 07:01:55,66.0,12,a\n2017-10-09 07:02:55,10,0,a\n2017-10-09 07:01:00,5,1,b\n"
	columns, err := ParseColumns("submit=start,runtime=seconds,units=gpus,owner=team")
	if err != nil {
		t.Fatal(err)
	}
	trace, err := ReadCSV(strings.NewReader(file), columns, 8)
	if err != nil {
		t.Fatal(err)
	}
	jobs, tooLarge := Prepare(trace.Jobs, Uniform(2, 8))
	want := []Job{
		{Name: "4", Owner: "b", Runtime: 5 * time.Second, Pods: 1, Units: 1},
		{Name: "2", Owner: "a", Submit: 55 * time.Second, Runtime: 66 * time.Second, Pods: 2, Units: 8},
	}
	if diff := cmp.Diff(want, jobs); diff != "" || tooLarge != 0 || trace.Skipped != 1 {
		t.Errorf("%d too large, %d skipped; jobs (-want,+got):\n%s", tooLarge, trace.Skipped, diff)
	}
}

func TestAnErrorNamesLineAndColumn(t *testing.T) {
	columns := Columns{Submit: "start", Runtime: "seconds", Units: "gpus"}
	for file, want := range map[string]string{
		"start,seconds\n1,2\n":             `no column "gpus"`,
		"start,seconds,gpus\nsoon,2,3\n":   "line 2, column start",
		"start,seconds,gpus\n1,2,3\n1,x,3": "line 3, column seconds",
		"start,seconds,gpus\n1,NaN,3\n":    `line 2, column seconds: "NaN" must be from -4e9 to 4e9`,
	} {
		if _, err := ReadCSV(strings.NewReader(file), columns, 8); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reading %q: got error %v, want one with %q", file, err, want)
		}
	}
	for file, want := range map[string]string{"1 2 3\n": "line 1: it has 3 fields", "1 x 0 60 4 -1 -1 4 60 -1 1 7\n": `line 1, field 2: "x"`,
		"1 0 0 1e30 4 -1 -1 4 60 -1 1 7\n": `line 1, field 4: "1e30" must be from -4e9 to 4e9`} {
		if _, err := ReadSWF(strings.NewReader(file), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("reading %q: got error %v, want one with %q", file, err, want)
		}
	}
}

func TestAGeneratedMachineHasTheLoadThatWasAskedFor(t *testing.T) {
	nodes := Uniform(512, 1)
	jobs, tooLarge := Prepare(Capability(5000, nodes, 0.82, 7), nodes)
	if err := Check(jobs); err != nil || tooLarge > 0 {
		t.Fatal(err, tooLarge)
	}
	if load := Load(jobs, nodes); math.Abs(load-0.82) > 0.03 {
		t.Errorf("load: got %.3f, want 0.82", load)
	}
	used := make([]float64, len(jobs))
	for i, job := range jobs {
		if job.Limit < job.Runtime {
			t.Fatalf("%s runs for longer than its limit", job.Name)
		}
		used[i] = job.Runtime.Seconds() / job.Limit.Seconds()
	}
	slices.Sort(used)
	if median := used[len(used)/2]; median < 0.2 || median > 0.4 {
		t.Errorf("the median job uses %.2f of its limit, want about 0.35 before limits are rounded up", median)
	}
}

func TestNudgedJobsRunForNearlyAsLongAndNoLongerThanTheirLimits(t *testing.T) {
	jobs := Training(200, Uniform(16, 8), 0.9, 1)
	for i := range jobs {
		jobs[i].Limit = jobs[i].Runtime
	}
	nudged, differ := Nudged(jobs, 1), 0
	for i, job := range nudged {
		if part := job.Runtime.Seconds() / jobs[i].Runtime.Seconds(); part < 0.989 || job.Runtime > job.Limit {
			t.Errorf("%s runs for %s in place of %s, with a limit of %s", job.Name, job.Runtime, jobs[i].Runtime, job.Limit)
		}
		if job.Runtime != jobs[i].Runtime {
			differ++
		}
	}
	if differ < len(jobs)/4 {
		t.Errorf("%d of %d run times differ", differ, len(jobs))
	}
}

// TestWeeksAreDrawnWhole: a job is created each day, for three weeks and two days.
func TestWeeksAreDrawnWhole(t *testing.T) {
	const day = 24 * time.Hour
	var jobs []Job
	for i := range 23 {
		jobs = append(jobs, Job{Name: "j", Submit: time.Duration(i) * day, Pods: 1 + i/7, Units: 1})
	}
	for seed := range uint64(20) {
		ofWeek, before := 0, time.Duration(0)
		for i, job := range Weeks(jobs, seed) {
			if i == 0 || ofWeek == 0 {
				ofWeek = []int{7, 7, 7, 2}[job.Pods-1]
			} else if job.Submit != before+day {
				t.Errorf("seed %d: job %d of a week is created %s after the one before, want a day", seed, i, job.Submit-before)
			}
			if gap := job.Submit - before; gap < 0 || gap > day {
				t.Errorf("seed %d: for %s before job %d no job is created", seed, gap, i)
			}
			ofWeek, before = ofWeek-1, job.Submit
		}
		if ofWeek != 0 {
			t.Errorf("seed %d: the last week is cut", seed)
		}
	}
}

func TestTheTwoOwnersWithTheMostWorkLie(t *testing.T) {
	const h = time.Hour
	jobs := []Job{
		{Name: "a", Owner: "honest", Runtime: 2 * h, Limit: 3 * h, Pods: 1, Units: 1},
		{Name: "b", Owner: "over", Runtime: h, Limit: h, Pods: 4, Units: 2},
		{Name: "c", Owner: "under", Runtime: h, Limit: h, Pods: 1, Units: 4},
		{Name: "d", Owner: "under", Runtime: 2 * time.Second, Pods: 1, Units: 1},
	}
	lying, liars, err := Lie(jobs, 10)
	if err != nil || liars != (Liars{Overstates: "over", Understates: "under"}) {
		t.Fatalf("liars %+v, %v", liars, err)
	}
	for i, want := range []time.Duration{3 * h, 10 * h, h / 10, time.Second} {
		if lying[i].Limit != want || lying[i].Runtime != jobs[i].Runtime {
			t.Errorf("job %s: limit %s, run time %s, want %s and %s", lying[i].Name, lying[i].Limit, lying[i].Runtime, want, jobs[i].Runtime)
		}
	}
	if jobs[1].Limit != h {
		t.Error("the jobs without liars have changed")
	}
	if _, _, err := Lie(jobs[1:], 10); err == nil {
		t.Error("both owners lie, and there is nobody whose waits count")
	}
}

// TestTimesOutOfRangeAreNamed: ten years is the longest run time, and the longest workload.
func TestTimesOutOfRangeAreNamed(t *testing.T) {
	columns := Columns{Submit: "start", Runtime: "seconds", Limit: "limit", Units: "gpus"}
	for file, want := range map[string]string{
		"start,seconds,limit,gpus\n0,3e9,0,1\n":             `job "2": the run time is 3000000000 s, and must be from 0 to 315360000 s`,
		"start,seconds,limit,gpus\n0,1,1,1\n4e9,1,1,1\n":    `job "3": it is created more than ten years before or after job "2"`,
		"start,seconds,limit,gpus\n-4e9,1,1,1\n4e9,1,1,1\n": `job "3": it is created more than ten years`,
		"start,seconds,limit,gpus\n0,1,4e9,1\n":             "", // such a limit limits nothing
	} {
		trace, err := ReadCSV(strings.NewReader(file), columns, 8)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(trace.Jobs); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", file, err, want)
		}
	}
	const header = "JobIDRaw|Submit|ElapsedRaw|Timelimit|AllocCPUS\n"
	for row, want := range map[string]string{
		"7|2026-11-01T08:00:00|99999999999|1|1\n":                    "the run time is 9223372037 s",
		"7|2026-11-01T08:00:00|60|9999999999999-00:00:00|1\n":        "",
		"7|2026-11-01T08:00:00|9999999999999-00:00:00|UNLIMITED|1\n": "the run time is",
	} {
		trace, err := ReadSacct(strings.NewReader(header+row), 8)
		if err != nil {
			t.Fatal(err)
		}
		if err := Check(trace.Jobs); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: error %v, want %q", row, err, want)
		}
	}
}

// TestNoLimitIsBelowTheRunTimeThatItOverstates, however long the job runs.
func TestNoLimitIsBelowTheRunTimeThatItOverstates(t *testing.T) {
	for _, job := range Estimates([]Job{{Runtime: longest}, {Runtime: longest / 2}, {Runtime: 0}}, 1000, 1) {
		if job.Limit < max(time.Second, job.Runtime) || job.Limit > longest {
			t.Errorf("a job that runs for %s has the limit %s", job.Runtime, job.Limit)
		}
	}
}
