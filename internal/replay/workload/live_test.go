// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWhatSacctPrintsIsRead(t *testing.T) {
	const file = `JobIDRaw|Account|Submit|Elapsed|Timelimit|AllocTRES
7|lab|2026-11-01T08:00:00|1-02:03:04|2-00:00:00|billing=32,cpu=32,gres/gpu=16,node=2
7.batch||2026-11-01T08:00:00|1-02:03:04||cpu=16,gres/gpu=8,node=1
8|lab|2026-11-01T08:00:10|00:00:00|01:00:00|
9|lab|2026-11-01T08:00:20|00:10:00|UNLIMITED|cpu=4,node=1
10|own|2026-11-01T08:00:30|05:00|60|cpu=4,gres/gpu=1,node=1
`
	trace, err := ReadSacct(strings.NewReader(file), 8)
	if err != nil {
		t.Fatal(err)
	}
	jobs, _ := Prepare(trace.Jobs, Uniform(4, 8))
	want := []Job{
		{Name: "7", Owner: "lab", Runtime: 26*time.Hour + 3*time.Minute + 4*time.Second, Limit: 48 * time.Hour, Pods: 2, Units: 8},
		{Name: "10", Owner: "own", Submit: 30 * time.Second, Runtime: 5 * time.Minute, Limit: time.Hour, Pods: 1, Units: 1},
	}
	if diff := cmp.Diff(want, jobs); diff != "" || trace.Skipped != 2 {
		t.Errorf("%d skipped; jobs (-want,+got):\n%s", trace.Skipped, diff)
	}
}

func TestJobsOfALiveClusterAreRead(t *testing.T) {
	const file = `{"items": [
 {"apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework", "metadata": {"namespace": "a", "name": "f", "creationTimestamp": "2026-11-01T08:00:00Z"},
  "spec": {"taskRoles": [{"taskNumber": 4, "task": {"pod": {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 8}}}]}}}},
   {"taskNumber": 1, "task": {"pod": {"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}}}}]},
  "status": {"startTime": "2026-11-01T08:00:01Z", "runTime": "2026-11-01T08:10:00Z", "completionTime": "2026-11-01T09:10:00Z"}},
 {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"namespace": "b", "name": "p", "creationTimestamp": "2026-11-01T08:01:00Z"},
  "spec": {"runPolicy": {"activeDeadlineSeconds": 7200}, "pytorchReplicaSpecs": {
   "Master": {"template": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]}}},
   "Worker": {"replicas": 3, "template": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "2"}}}]}}}}},
  "status": {"startTime": "2026-11-01T08:01:00Z", "completionTime": "2026-11-01T08:31:00Z"}},
 {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"namespace": "c", "name": "v", "creationTimestamp": "2026-11-01T08:02:00Z"},
  "spec": {"tasks": [{"replicas": 2, "template": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}}]},
  "status": {"conditions": [{"status": "Running", "lastTransitionTime": "2026-11-01T08:03:00Z"}, {"status": "Completed", "lastTransitionTime": "2026-11-01T08:13:00Z"}]}},
 {"kind": "Job", "metadata": {"namespace": "c", "name": "runs", "creationTimestamp": "2026-11-01T08:02:00Z"},
  "spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"nvidia.com/gpu": "1"}}}]}}}, "status": {}}
]}`
	trace, err := ReadObjects(strings.NewReader(file), 8)
	if err != nil {
		t.Fatal(err)
	}
	jobs, _ := Prepare(trace.Jobs, Uniform(4, 8))
	want := []Job{
		{Name: "framework.frameworkcontroller.microsoft.com/a/f", Owner: "a", Runtime: time.Hour, Pods: 4, Units: 8},
		{Name: "pytorchjob.kubeflow.org/b/p", Owner: "b", Submit: time.Minute, Runtime: 30 * time.Minute, Limit: 2 * time.Hour, Pods: 4, Units: 2},
		{Name: "job.batch.volcano.sh/c/v", Owner: "c", Submit: 2 * time.Minute, Runtime: 10 * time.Minute, Pods: 2, Units: 1},
	}
	if diff := cmp.Diff(want, jobs); diff != "" || trace.Skipped != 1 {
		t.Errorf("%d skipped; jobs (-want,+got):\n%s", trace.Skipped, diff)
	}
}

func TestNodesOfALiveClusterAreRead(t *testing.T) {
	const file = `{"items": [
 {"status": {"allocatable": {"cpu": "63500m", "nvidia.com/gpu": "8"}}},
 {"status": {"allocatable": {"cpu": "31", "nvidia.com/gpu": "4"}}},
 {"spec": {"unschedulable": true}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}},
 {"status": {"allocatable": {"cpu": "8"}}}]}`
	nodes, err := ReadNodes(strings.NewReader(file))
	if diff := cmp.Diff(Nodes{8, 4}, nodes); diff != "" || err != nil {
		t.Errorf("%v; nodes (-want,+got):\n%s", err, diff)
	}
	if _, err := ReadNodes(strings.NewReader(`{"items": []}`)); err == nil || !strings.Contains(err.Error(), "none is a node") {
		t.Errorf("without nodes: got error %v", err)
	}
}

// endedJob is a Job of batch that has run for a minute, with what its spec has beside.
func endedJob(spec string) string {
	return `{"items": [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "n", "name": "train", "creationTimestamp": "2026-11-01T08:00:00Z"},
 "spec": {` + spec + `}, "status": {"startTime": "2026-11-01T08:00:00Z", "completionTime": "2026-11-01T08:01:00Z"}}]}`
}

// podRequesting is the template of a Pod that requests so much CPU.
func podRequesting(cpu string) string {
	return `"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "` + cpu + `"}}}]}}`
}

// TestWhatATenantWroteStopsNoReplay: whoever may create a job may write such things.
func TestWhatATenantWroteStopsNoReplay(t *testing.T) {
	for name, test := range map[string]struct {
		spec          string
		jobs, skipped int
		limit         time.Duration
	}{
		"a limit of centuries":        {spec: `"activeDeadlineSeconds": 10000000000, ` + podRequesting("1"), jobs: 1, limit: longest},
		"a quantity without an end":   {spec: podRequesting("1e-1000000000"), skipped: 1},
		"a negative quantity":         {spec: `"parallelism": 3, ` + podRequesting("-1"), skipped: 1},
		"a negative number of Pods":   {spec: `"parallelism": -3, ` + podRequesting("1"), skipped: 1},
		"more Pods than a number has": {spec: `"parallelism": 1e300, ` + podRequesting("1"), jobs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			trace, err := ReadObjects(strings.NewReader(endedJob(test.spec)), 8)
			if err != nil || len(trace.Jobs) != test.jobs || trace.Skipped != test.skipped {
				t.Fatalf("%d jobs, %d skipped, error %v, want %d and %d", len(trace.Jobs), trace.Skipped, err, test.jobs, test.skipped)
			}
			if err := Check(trace.Jobs); err != nil {
				t.Error(err)
			}
			if test.limit > 0 && trace.Jobs[0].Limit != test.limit {
				t.Errorf("the limit is %s, want %s", trace.Jobs[0].Limit, test.limit)
			}
		})
	}
}

// TestJobsOfTwoProjectsMayHaveOneName: a Job of batch and one of Volcano.
func TestJobsOfTwoProjectsMayHaveOneName(t *testing.T) {
	one := strings.TrimSuffix(strings.TrimPrefix(endedJob(podRequesting("1")), `{"items": [`), "]}")
	both := `{"items": [` + one + "," + strings.Replace(one, "batch/v1", "batch.volcano.sh/v1alpha1", 1) + "]}"
	trace, err := ReadObjects(strings.NewReader(both), 8)
	if err != nil || len(trace.Jobs) != 2 {
		t.Fatalf("%d jobs, error %v", len(trace.Jobs), err)
	}
	if err := Check(trace.Jobs); err != nil {
		t.Error(err)
	}
}
