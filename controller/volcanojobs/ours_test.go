// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcanojobs

import (
	"math"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/volcano"
)

func TestWhoseJobItIs(t *testing.T) {
	c := &Core{options: volcano.Options{SchedulerNames: []string{"lockstep-scheduler", ""}}}
	alone := &Core{options: volcano.Options{SchedulerNames: []string{"lockstep-scheduler"}}}
	const ours, theirs = `{"spec":{"schedulerName":"lockstep-scheduler"}}`, `{"spec":{"schedulerName":"volcano"}}`
	tests := map[string]struct {
		core           *Core
		spec           string
		ignored, wrong bool
	}{
		"a name in the list":               {core: c, spec: `{"schedulerName":"lockstep-scheduler"}`},
		"a name that is not":               {core: c, spec: `{"schedulerName":"volcano"}`, ignored: true},
		"no name, which is in the list":    {core: c, spec: `{"tasks":[{"template":{"spec":{}}}]}`},
		"no name, which is not":            {core: alone, spec: `{"tasks":[{"template":{"spec":{}}}]}`, ignored: true},
		"no spec at all":                   {core: alone, ignored: true},
		"one that the templates share":     {core: alone, spec: `{"tasks":[{"template":` + ours + `},{"template":` + ours + `}]}`},
		"templates that do not share one":  {core: alone, spec: `{"tasks":[{"template":` + ours + `},{"template":` + theirs + `}]}`, ignored: true},
		"the Job's before the templates'":  {core: alone, spec: `{"schedulerName":"lockstep-scheduler","tasks":[{"template":` + theirs + `}]}`},
		"a wrong spec of ours":             {core: c, spec: `{"tasks":[{"replicas":"many","template":` + ours + `}]}`, wrong: true},
		"a wrong spec of another":          {core: c, spec: `{"schedulerName":"volcano","tasks":[{"replicas":"many"}]}`, ignored: true, wrong: true},
		"a wrong one that can't say whose": {core: c, spec: `{"schedulerName":7}`, ignored: true, wrong: true},
		"tasks that can't say whose":       {core: c, spec: `{"tasks":"none"}`, ignored: true, wrong: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job, err := tc.core.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{Name: "j"}, []byte(tc.spec))
			if job == nil || job.Name != "j" {
				t.Fatalf("the Job is %v, want one with its metadata", job)
			}
			if got := tc.core.Ignores(job); got != tc.ignored || err != nil || (job.unreadable != "") != tc.wrong {
				t.Errorf("ignored: %t, want %t; can't be read: %q; error: %v", got, tc.ignored, job.unreadable, err)
			}
		})
	}
}

// TestAJobIsAsLargeAsItIsToBe from the first look at it on, so that it is worked on as seldom as one
// of its size.
func TestAJobIsAsLargeAsItIsToBe(t *testing.T) {
	job := &Job{Job: &batchv1alpha1.Job{}}
	counts := func(running int32) *batchv1alpha1.JobStatus {
		return &batchv1alpha1.JobStatus{MinAvailable: 1, Running: running, Succeeded: 1, Failed: 1, Pending: 1, Terminating: 1, Unknown: 1}
	}
	for _, tc := range []struct {
		replicas []int32
		status   *batchv1alpha1.JobStatus
		want     int
	}{
		{nil, nil, 0},
		{[]int32{6000, 3000}, nil, 9000},
		{[]int32{6000, 3000}, counts(1), 9000},
		{[]int32{6000, 3000}, counts(9000), 9005},
		{[]int32{3, 4}, &batchv1alpha1.JobStatus{MinAvailable: 9}, 9},
		{[]int32{3, 4}, &batchv1alpha1.JobStatus{MinAvailable: math.MaxInt32}, batchv1alpha1.MaxReplicas},
		{[]int32{-7, 4}, nil, 4},
		{[]int32{math.MaxInt32, math.MaxInt32, 1}, nil, batchv1alpha1.MaxReplicas},
	} {
		job.Spec.Tasks = nil
		for _, n := range tc.replicas {
			job.Spec.Tasks = append(job.Spec.Tasks, batchv1alpha1.TaskSpec{Replicas: n})
		}
		if got := (&Core{}).Size(job, tc.status); got != tc.want {
			t.Errorf("of %v replicas, with the status %+v: %d, want %d", tc.replicas, tc.status, got, tc.want)
		}
	}
}

// TestASpecThatUnfoldsToFarMoreIsNotDecoded has specs of some hundred kilobytes that would take
// hundreds of times as much. Whose they are is known all the same.
func TestASpecThatUnfoldsToFarMoreIsNotDecoded(t *testing.T) {
	c := &Core{options: volcano.Options{SchedulerNames: []string{"lockstep-scheduler"}}}
	list := func(element string, n int) string { return "[" + strings.Repeat(element+",", n-1) + element + "]" }
	template := func(volumes int) string {
		return `{"template":{"spec":{"schedulerName":"lockstep-scheduler","containers":[{"name":"c"}],"volumes":` + list("{}", volumes) + `}}}`
	}
	tests := map[string]struct{ spec, want string }{
		"templates that fit":             {spec: `{"tasks":` + list(template(5000), 4) + `}`},
		"templates that together do not": {spec: `{"tasks":` + list(template(5000), 6) + `}`, want: "spec must have at most 50000 JSON values, all templates together, has 60"},
		"empty tasks":                    {spec: `{"schedulerName":"lockstep-scheduler","tasks":` + list("{}", 200_000) + `}`, want: "spec must have at most 50000 JSON values"},
		"more tasks than there may be":   {spec: `{"tasks":` + list(template(1), 101) + `}`, want: "spec.tasks: Too many: 101: must have at most 100 items"},
		"more volumes":                   {spec: `{"schedulerName":"lockstep-scheduler","volumes":` + list("{}", 33) + `}`, want: "spec.volumes: Too many: 33: must have at most 32 items"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job, err := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{Name: "j"}, []byte(tc.spec))
			if err != nil || c.Ignores(job) {
				t.Fatalf("error %v, ignored %t, want a Job of ours", err, c.Ignores(job))
			}
			if !strings.Contains(job.unreadable, tc.want) || (job.unreadable == "") != (tc.want == "") {
				t.Errorf("it can't be read: %q, want %q", job.unreadable, tc.want)
			}
			if held := len(job.Spec.Tasks) + len(job.Spec.Volumes); tc.want != "" && held > 0 {
				t.Errorf("%d of its tasks and volumes were decoded", held)
			}
		})
	}
}

// TestManagersOfTheStatusAreKept, without what they have written, and no others.
func TestManagersOfTheStatusAreKept(t *testing.T) {
	c := &Core{}
	job, err := c.DecodeOwner(metav1.TypeMeta{}, metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1("{}")},
		{Manager: "volcano", Subresource: "status", FieldsV1: metav1.NewFieldsV1("{}")},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(job.ManagedFields) != 1 || job.ManagedFields[0].Manager != "volcano" || job.ManagedFields[0].FieldsV1 != nil {
		t.Errorf("the managers are %v, want that of the status alone", job.ManagedFields)
	}
}

func TestACommandThatMakesNoSenseIsForNobody(t *testing.T) {
	tests := map[string]struct {
		fields map[string]any
		target string
	}{
		"a Command for a Job": {
			fields: map[string]any{"action": "AbortJob", "target": map[string]any{"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u"}},
			target: "j",
		},
		"a Command for a queue": {
			fields: map[string]any{"action": "OpenQueue", "target": map[string]any{"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "j", "uid": "u"}},
		},
		"one without a target":    {fields: map[string]any{"action": "AbortJob"}},
		"one that can't be read":  {fields: map[string]any{"action": []any{"AbortJob"}, "target": "j"}},
		"one whose target is odd": {fields: map[string]any{"action": "AbortJob", "target": map[string]any{"name": int64(7)}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			raw := &unstructured.Unstructured{Object: tc.fields}
			raw.SetNamespace("ns")
			raw.SetName("c")
			decoded, err := decodeCommand(raw)
			command, ok := decoded.(*busv1alpha1.Command)
			if err != nil || !ok || command.Namespace != "ns" || command.Name != "c" {
				t.Fatalf("the Command is %v, with the error %v, want one with its metadata", decoded, err)
			}
			if got := volcano.TargetOf(command); got != tc.target {
				t.Errorf("it is for %q, want %q", got, tc.target)
			}
		})
	}
}
