// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
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
	trace, err := ReadObjects(strings.NewReader(file), 8, "")
	if err != nil {
		t.Fatal(err)
	}
	jobs, _ := Prepare(trace.Jobs, Uniform(4, 8))
	want := []Job{
		{Name: "a/f", Owner: "a", Runtime: time.Hour, Pods: 4, Units: 8},
		{Name: "b/p", Owner: "b", Submit: time.Minute, Runtime: 30 * time.Minute, Limit: 2 * time.Hour, Pods: 4, Units: 2},
		{Name: "c/v", Owner: "c", Submit: 2 * time.Minute, Runtime: 10 * time.Minute, Pods: 2, Units: 1},
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
	nodes, unit, err := ReadNodes(strings.NewReader(file))
	if diff := cmp.Diff(Nodes{8, 4}, nodes); diff != "" || unit != GPUs || err != nil {
		t.Errorf("%v; unit %q; nodes (-want,+got):\n%s", err, unit, diff)
	}
	for text, want := range map[string]string{
		`{"items": []}`:   "there are no objects: want what kubectl get nodes -o json prints",
		`{"items": [{}]}`: "none is a node",
	} {
		if _, _, err := ReadNodes(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
}

// endedJob is a Job of batch that has run for a minute, with what its spec has beside.
func endedJob(spec string) string {
	return `{"items": [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "n", "name": "train", "creationTimestamp": "2026-11-01T08:00:00Z"},
 "spec": {` + spec + `}, "status": {"startTime": "2026-11-01T08:00:00Z", "completionTime": "2026-11-01T08:01:00Z"}}]}`
}

// podRequesting is the template of a Pod that requests so much CPU.
func podRequesting(cpu string) string {
	return podWith(`"cpu": "` + cpu + `"`)
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
		"more GPUs than a number has": {spec: `"parallelism": 1000000000, ` + podRequesting("1000000000"), jobs: 1},
		"more Pods than a number has": {spec: `"parallelism": 1e300, ` + podRequesting("1"), jobs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			trace, err := ReadObjects(strings.NewReader(endedJob(test.spec)), 8, "")
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

// TestJobsMayHaveOneName: a Job of batch, one of Volcano, and one that was created again.
func TestJobsMayHaveOneName(t *testing.T) {
	one := strings.TrimSuffix(strings.TrimPrefix(endedJob(podRequesting("1")), `{"items": [`), "]}")
	all := `{"items": [` + one + "," + strings.Replace(one, "batch/v1", "batch.volcano.sh/v1alpha1", 1) + "," + one + "]}"
	trace, err := ReadObjects(strings.NewReader(all), 8, "")
	if err != nil || len(trace.Jobs) != 3 {
		t.Fatalf("%d jobs, error %v", len(trace.Jobs), err)
	}
	if err := Check(trace.Jobs); err != nil {
		t.Error(err)
	}
}

// objectOf returns a job with further metadata, a spec and a status. It was created at 08:00:00.
func objectOf(metadata, spec, status string) string {
	return `{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"namespace": "n", "creationTimestamp": "2026-11-01T08:00:00Z", ` + metadata + `},
 "spec": {` + spec + `}, "status": {` + status + `}}`
}

// ranAnHour is the status of a job that ran for an hour.
const ranAnHour = `"startTime": "2026-11-01T08:00:00Z", "completionTime": "2026-11-01T09:00:00Z"`

// podWith is the template of a Pod with requests.
func podWith(requests string) string {
	return `"template": {"spec": {"containers": [{"resources": {"requests": {` + requests + `}}}]}}`
}

func TestTheSmallestLimitOfAnObjectCountsOtherwiseItsEstimate(t *testing.T) {
	const limit, estimate = `"lockstep.dev/max-runtime-seconds": `, `"scheduling.lockstep.dev/expected-runtime-seconds": `
	for name, test := range map[string]struct {
		annotations, spec string
		want              time.Duration
	}{
		"no limit":                           {},
		"the limit of a gang":                {spec: `"gang": {"maxRuntimeSeconds": 60, "expectedRuntimeSeconds": 30},`, want: time.Minute},
		"an annotation":                      {annotations: limit + `"60"`, want: time.Minute},
		"an annotation below a field":        {annotations: limit + `"60"`, spec: `"gang": {"maxRuntimeSeconds": 90},`, want: time.Minute},
		"a field below an annotation":        {annotations: limit + `"90"`, spec: `"runPolicy": {"activeDeadlineSeconds": 60},`, want: time.Minute},
		"the estimate of a gang":             {spec: `"gang": {"expectedRuntimeSeconds": 30},`, want: 30 * time.Second},
		"an estimate in an annotation":       {annotations: estimate + `"30"`, want: 30 * time.Second},
		"an estimate of Volcano":             {spec: `"runningEstimate": "1m30s",`, want: 90 * time.Second},
		"an estimate of Volcano below 1 s":   {spec: `"runningEstimate": "1ms",`, want: time.Second},
		"an annotation that is no number":    {annotations: limit + `"1h"`, spec: `"gang": {"expectedRuntimeSeconds": 30},`, want: 30 * time.Second},
		"fields that are 0":                  {spec: `"gang": {"maxRuntimeSeconds": 0, "expectedRuntimeSeconds": 0}, "runningEstimate": "0s",`},
		"fields below 0":                     {annotations: limit + `"-1"`, spec: `"activeDeadlineSeconds": -5, "runningEstimate": "-1h",`},
		"fields that are no numbers of time": {annotations: estimate + `""`, spec: `"activeDeadlineSeconds": "5", "runningEstimate": "soon",`},
	} {
		object := objectOf(`"name": "j", "annotations": {`+test.annotations+"}", test.spec+podWith(`"cpu": 1`), ranAnHour)
		trace, err := ReadObjects(strings.NewReader(`{"items": [`+object+"]}"), 8, "")
		if err != nil || len(trace.Jobs) != 1 || trace.Jobs[0].Limit != test.want {
			t.Errorf("%s: %v, %+v, want the limit %s", name, err, trace.Jobs, test.want)
		}
	}
}

func TestAllObjectsOfAFileAreRead(t *testing.T) {
	job := func(name, status string) string {
		return objectOf(fmt.Sprintf(`"name": %q, "uid": %q`, name, "uid of "+name), podWith(`"cpu": 1`), status)
	}
	list := func(objects ...string) string {
		return `{"kind": "List", "items": [` + strings.Join(objects, ",") + "]}\n"
	}
	for name, test := range map[string]struct {
		text    string
		jobs    int
		skipped int
		err     string
	}{
		"two lists":                           {text: list(job("a", ranAnHour)) + list(job("b", ranAnHour)), jobs: 2},
		"an object":                           {text: job("a", ranAnHour), jobs: 1},
		"an object that runs":                 {text: job("a", ""), skipped: 1},
		"two objects and a list":              {text: job("a", ranAnHour) + job("b", ranAnHour) + list(job("c", ranAnHour)), jobs: 3},
		"a list without objects before a job": {text: list() + list(job("a", ranAnHour)), jobs: 1},
		"a job that ran when it was listed first, and had ended later": {text: list(job("a", "")) + list(job("a", ranAnHour)), jobs: 1},
		"a list without objects":  {text: list(), err: "there are no objects: want what kubectl get frameworks,vcjobs,pytorchjobs,jobs -A -o json prints"},
		"nothing":                 {err: "there are no objects"},
		"something else":          {text: list(job("a", ranAnHour)) + `{"nodes": [8]}`, err: "document 2 is neither a list nor an object of Kubernetes: want what kubectl get"},
		"no JSON after an object": {text: job("a", ranAnHour) + "b", err: "document 2: invalid character"},
	} {
		trace, err := ReadObjects(strings.NewReader(test.text), 8, "")
		if (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: error %v, want %q", name, err, test.err)
		}
		if len(trace.Jobs) != test.jobs || trace.Skipped != test.skipped {
			t.Errorf("%s: %d jobs, %d skipped, want %d and %d", name, len(trace.Jobs), trace.Skipped, test.jobs, test.skipped)
		}
	}
}

func TestNodesThatTakeNoJobsAreLeftOut(t *testing.T) {
	taint := func(key, effect string) string {
		return fmt.Sprintf(`"spec": {"taints": [{"key": %q, "effect": %q}]},`, key, effect)
	}
	ready := func(status string) string {
		return `"conditions": [{"type": "DiskPressure", "status": "False"}, {"type": "Ready", "status": "` + status + `"}],`
	}
	for name, test := range map[string]struct {
		spec, status string
		counts       bool
	}{
		"a ready node":                      {status: ready("True"), counts: true},
		"a node that is not ready":          {status: ready("False")},
		"a node that is not heard from":     {status: ready("Unknown")},
		"a cordoned node":                   {spec: `"spec": {"unschedulable": true},`, status: ready("True")},
		"a node of the control plane":       {spec: taint("node-role.kubernetes.io/control-plane", "NoSchedule")},
		"a master":                          {spec: taint("node-role.kubernetes.io/master", "NoSchedule")},
		"a node of a softer control plane":  {spec: taint("node-role.kubernetes.io/control-plane", "PreferNoSchedule"), counts: true},
		"a node for jobs with GPUs":         {spec: taint("nvidia.com/gpu", "NoSchedule"), counts: true},
		"a node without conditions, taints": {counts: true},
	} {
		nodes, _, err := ReadNodes(strings.NewReader(`{"items": [{` + test.spec + `"status": {` + test.status + `"allocatable": {"nvidia.com/gpu": "8"}}}]}`))
		if len(nodes) == 1 != test.counts || (err == nil) != test.counts {
			t.Errorf("%s: %d nodes, error %v, want that it counts: %v", name, len(nodes), err, test.counts)
		}
	}
}

func TestATrainingJobBeganWhenItsPodsRan(t *testing.T) {
	condition := func(name, status, at string) string {
		return fmt.Sprintf(`{"type": %q, "status": %q, "lastTransitionTime": "2026-11-01T%sZ"}`, name, status, at)
	}
	for name, test := range map[string]struct {
		running string
		more    string
		want    time.Duration
	}{
		"Kubeflow's operator leaves the time of the condition":       {running: "08:20:00", want: 40 * time.Minute},
		"Lockstep sets the time of the condition to the end":         {running: "09:00:00", want: time.Hour},
		"the limit of Lockstep counts from when enough Pods ran":     {running: "09:00:00", more: `"runtimeLimit": {"seconds": 7200, "since": "2026-11-01T08:30:00Z"},`, want: 30 * time.Minute},
		"a job that was resumed did not run when it was stopped":     {running: "07:00:00", want: time.Hour},
		"a limit that counts from the end says nothing of the start": {running: "09:00:00", more: `"runtimeLimit": {"seconds": 7200, "since": "2026-11-01T09:00:00Z"},`, want: time.Hour},
	} {
		status := ranAnHour + "," + test.more + `"conditions": [` + condition("Running", "False", test.running) + "," + condition("Succeeded", "True", "09:00:00") + "]"
		trace, err := ReadObjects(strings.NewReader(objectOf(`"name": "j"`, podWith(`"cpu": 1`), status)), 8, "")
		if err != nil || len(trace.Jobs) != 1 || trace.Jobs[0].Runtime != test.want {
			t.Errorf("%s: %v, %+v, want the run time %s", name, err, trace.Jobs, test.want)
		}
	}
}

func TestAResumedJobRunsFromItsLastStartToItsLastEnd(t *testing.T) {
	status, at := "", []string{"08:00:00", "08:10:00", "09:00:00", "10:00:00"}
	for i, phase := range []string{"Running", "Aborted", "Running", "Completed"} {
		status += fmt.Sprintf(`, {"status": %q, "lastTransitionTime": "2026-11-01T%sZ"}`, phase, at[i])
		trace, err := ReadObjects(strings.NewReader(objectOf(`"name": "j"`, podWith(`"cpu": 1`), `"conditions": [`+status[2:]+"]")), 8, "")
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case phase == "Running" && len(trace.Jobs) != 0:
			t.Errorf("a job that runs since %s counts as ended", at[i])
		case phase == "Completed" && (len(trace.Jobs) != 1 || trace.Jobs[0].Runtime != time.Hour):
			t.Errorf("%+v, want a run of an hour", trace.Jobs)
		}
	}
}

func TestUnitsOfJobsAreThoseOfTheNodes(t *testing.T) {
	job := func(name, requests string) string {
		return objectOf(`"name": "`+name+`"`, podWith(requests), ranAnHour)
	}
	const gpus, cores = `{"items": [{"status": {"allocatable": {"cpu": "64", "nvidia.com/gpu": "8"}}}]}`, `{"items": [{"status": {"allocatable": {"cpu": "64"}}}]}`
	both := job("train", `"cpu": "32", "nvidia.com/gpu": "2"`) + job("prepare", `"cpu": "31500m"`)
	for name, test := range map[string]struct {
		nodes, objects, jobs string
		skipped              int
	}{
		"nodes with GPUs":                       {nodes: gpus, objects: both, jobs: "train:1x2", skipped: 1},
		"nodes with GPUs, no job with any":      {nodes: gpus, objects: job("prepare", `"cpu": "32"`), skipped: 1},
		"nodes without GPUs":                    {nodes: cores, objects: both, jobs: "train:1x32 prepare:1x32"},
		"a number of nodes":                     {objects: both, jobs: "train:1x2", skipped: 1},
		"a number of nodes, no job with GPUs":   {objects: job("prepare", `"cpu": "32"`), jobs: "prepare:4x8"},
		"a job without GPUs that has not ended": {nodes: gpus, objects: objectOf(`"name": "a"`, podWith(`"cpu": "1"`), ""), skipped: 1},
	} {
		perNode, unit := 8, Unit("")
		if test.nodes != "" {
			nodes, of, err := ReadNodes(strings.NewReader(test.nodes))
			if err != nil {
				t.Fatal(err)
			}
			perNode, unit = nodes.Largest(), of
		}
		trace, err := ReadObjects(strings.NewReader(test.objects), perNode, unit)
		got := strings.ReplaceAll(jobsOf(trace), "n/", "")
		if err != nil || got != test.jobs || trace.Skipped != test.skipped {
			t.Errorf("%s: %v; jobs %q, %d skipped, want %q and %d", name, err, got, trace.Skipped, test.jobs, test.skipped)
		}
	}
}
