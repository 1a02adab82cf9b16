// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// aWhile is for how long a Pod runs before it ends, so that its end is no quick one.
const aWhile = time.Minute

// example is a whole life of a Framework, of which only the ends of some Pods are
// told. All other Pods run on.
type example struct {
	framework *frameworkv1.Framework
	// ends are "task=exit code", one after the other. "configmap" is the user who
	// deletes the ConfigMap.
	ends []string
	// want is the status when nothing moves any more.
	want string
}

func (e example) check(t *testing.T) {
	w := newWorld(t, e.framework)
	w.run()
	for _, end := range e.ends {
		if end == "configmap" {
			w.runPods()
			w.now = w.now.Add(aWhile)
			w.deleteConfigMap()
			w.settle()
			continue
		}
		task, exit, _ := strings.Cut(end, "=")
		code, err := strconv.Atoi(exit)
		if err != nil {
			t.Fatalf("%q has no exit code: %v", end, err)
		}
		w.awaitPod("fw-" + task)
		w.runPods()
		w.now = w.now.Add(aWhile)
		w.end(task, int32(code))
		w.now = w.now.Add(time.Second)
	}
	w.settle()
	if diff := cmp.Diff(e.want, transcript(w.readBack(w.written))); diff != "" {
		t.Errorf("unexpected status at the end (-want +got):\n%s", diff)
	}
}

// awaitPod lets time pass until a Pod is there.
func (w *world) awaitPod(name string) {
	w.t.Helper()
	for range 10 {
		if pod := w.pods[name]; pod != nil && pod.DeletionTimestamp == nil {
			return
		}
		w.settle()
		w.now = w.now.Add(15 * time.Minute)
		w.run()
	}
	w.t.Fatalf("Pod %s never comes; the status is %s", name, transcript(w.readBack(w.written)))
}

// runPods lets all waiting Pods run.
func (w *world) runPods() {
	for _, name := range w.podNames() {
		if pod := w.pods[name]; pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending {
			w.setPhase(name, corev1.PodRunning, 0)
		}
	}
	w.run()
}

// settle lets everything that is being deleted go.
func (w *world) settle() {
	for range 3 {
		w.collectGarbage()
		w.run()
		for _, name := range w.podNames() {
			w.endPod(name)
		}
		w.collectGarbage()
		w.run()
	}
}

// times repeats an end.
func times(n int, end string) []string {
	ends := make([]string, n)
	for i := range ends {
		ends[i] = end
	}
	return ends
}

// TestRetryExamples are the framework types that the manual's chapter RetryPolicy
// names.
func TestRetryExamples(t *testing.T) {
	policy := func(fancy bool, most int32) frameworkv1.RetryPolicySpec {
		return frameworkv1.RetryPolicySpec{FancyRetryPolicy: fancy, MaxRetryCount: most}
	}
	of := func(attempts, task frameworkv1.RetryPolicySpec) *frameworkv1.Framework {
		a := role("a", 1)
		a.Task.RetryPolicy = task
		f := framework(a)
		f.Spec.RetryPolicy = attempts
		return f
	}
	byDefault := func() *frameworkv1.Framework { return framework(role("a", 1), role("b", 1)) }
	service := func() *frameworkv1.Framework { return of(policy(false, -2), policy(false, -2)) }
	blindBatch := func() *frameworkv1.Framework { return of(policy(false, -1), policy(false, -1)) }
	tolerant := func() *frameworkv1.Framework { return of(policy(true, 3), policy(true, 3)) }
	intolerant := func() *frameworkv1.Framework { return of(policy(true, 3), policy(false, 0)) }
	debug := func() *frameworkv1.Framework { return of(policy(true, 0), policy(true, 0)) }

	tests := map[string]example{
		"DEFAULT: no failure is retried":             {byDefault(), []string{"a-0=1"}, "F#0 Completed(1), a-0#0 Completed(1), b-0#0 Completed(-220)"},
		"DEFAULT: not even a Transient one":          {byDefault(), []string{"b-0=200"}, "F#0 Completed(200), a-0#0 Completed(-220), b-0#0 Completed(200)"},
		"DEFAULT: nor a success":                     {byDefault(), []string{"a-0=0", "b-0=0"}, "F#0 Completed(0), a-0#0 Completed(0), b-0#0 Completed(0)"},
		"DEFAULT: nor a ConfigMap that was deleted":  {byDefault(), []string{"configmap"}, "F#0 Completed(-100), a-0#0 Completed(-101), b-0#0 Completed(-101)"},
		"Service: every end of a task is retried":    {service(), []string{"a-0=1", "a-0=0", "a-0=210", "a-0=200"}, "F#0 AttemptRunning, a-0#4 AttemptPreparing"},
		"Service: every end of an attempt too":       {service(), []string{"configmap", "configmap"}, "F#2 AttemptPreparing, a-0#0 AttemptPreparing"},
		"Blind Batch: every failure is retried":      {blindBatch(), []string{"a-0=1", "a-0=210", "a-0=200", "a-0=201"}, "F#0 AttemptRunning, a-0#4 AttemptPreparing"},
		"Blind Batch: a failed attempt too":          {blindBatch(), []string{"configmap", "a-0=0"}, "F#1 Completed(0), a-0#0 Completed(0)"},
		"Blind Batch: a success is not retried":      {blindBatch(), []string{"a-0=1", "a-0=0"}, "F#0 Completed(0), a-0#1 Completed(0)"},
		"Task Fault Tolerance: Transient is free":    {tolerant(), append(times(9, "a-0=200"), "a-0=0"), "F#0 Completed(0), a-0#9 Completed(0)"},
		"Task Fault Tolerance: Permanent is final":   {tolerant(), []string{"a-0=210"}, "F#0 Completed(210), a-0#0 Completed(210)"},
		"Task Fault Tolerance: a success is final":   {tolerant(), []string{"a-0=0"}, "F#0 Completed(0), a-0#0 Completed(0)"},
		"Task Fault Tolerance: Unknown counts twice": {tolerant(), times(16, "a-0=1"), "F#3 Completed(1), a-0#3 Completed(1)"},
		"Task Fault Tolerance: Transient in between": {tolerant(), []string{"a-0=1", "a-0=200", "a-0=1", "a-0=200", "a-0=1", "a-0=0"}, "F#0 Completed(0), a-0#5 Completed(0)"},
		"no Task Fault Tolerance: Transient is free": {intolerant(), append(times(9, "a-0=200"), "a-0=0"), "F#9 Completed(0), a-0#0 Completed(0)"},
		"no Task Fault Tolerance: a Conflict waits":  {intolerant(), []string{"a-0=201", "a-0=0"}, "F#1 Completed(0), a-0#0 Completed(0)"},
		"no Task Fault Tolerance: Permanent is final": {
			intolerant(), []string{"a-0=210"}, "F#0 Completed(210), a-0#0 Completed(210)"},
		"no Task Fault Tolerance: Unknown counts":      {intolerant(), times(4, "a-0=1"), "F#3 Completed(1), a-0#0 Completed(1)"},
		"Debug Mode: Transient is retried":             {debug(), append(times(3, "a-0=200"), "a-0=0"), "F#0 Completed(0), a-0#3 Completed(0)"},
		"Debug Mode: an unknown end is kept to see":    {debug(), []string{"a-0=1"}, "F#0 Completed(1), a-0#0 Completed(1)"},
		"Debug Mode: so is a Permanent one":            {debug(), []string{"a-0=210"}, "F#0 Completed(210), a-0#0 Completed(210)"},
		"Debug Mode: a deleted ConfigMap is Transient": {debug(), []string{"configmap", "a-0=0"}, "F#1 Completed(0), a-0#0 Completed(0)"},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

// TestCompletionExamples are the framework types that the manual's chapter
// FrameworkAttemptCompletionPolicy names, and a Framework without tasks.
func TestCompletionExamples(t *testing.T) {
	of := func(name string, tasks, minFailed, minSucceeded int32) frameworkv1.TaskRoleSpec {
		r := role(name, tasks)
		r.FrameworkAttemptCompletionPolicy = frameworkv1.CompletionPolicySpec{
			MinFailedTaskCount: ptr.To(minFailed), MinSucceededTaskCount: ptr.To(minSucceeded),
		}
		return r
	}
	byDefault := func() *frameworkv1.Framework { return framework(of("a", 2, 1, -1), of("b", 1, 1, -1)) }
	service := func() *frameworkv1.Framework {
		f := framework(of("a", 2, 1, -1))
		f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
		return f
	}
	// A quarter of the map tasks and half of the reduce tasks may fail.
	mapReduce := func() *frameworkv1.Framework { return framework(of("map", 4, 2, -1), of("reduce", 2, 2, -1)) }
	master := func() *frameworkv1.Framework { return framework(of("master", 1, 1, 1), of("worker", 2, -1, -1)) }
	allWorkers := func() *frameworkv1.Framework { return framework(of("ps", 1, 1, -1), of("worker", 2, 1, 2)) }
	anyWorker := func() *frameworkv1.Framework { return framework(of("worker", 3, 3, 1)) }

	tests := map[string]example{
		"DEFAULT: the first failure fails it": {byDefault(), []string{"a-0=0", "b-0=7"},
			"F#0 Completed(7), a-0#0 Completed(0), a-1#0 Completed(-220), b-0#0 Completed(7)"},
		"DEFAULT: a success does not complete it": {byDefault(), []string{"a-0=0", "a-1=0"},
			"F#0 AttemptRunning, a-0#0 Completed(0), a-1#0 Completed(0), b-0#0 AttemptRunning"},
		"DEFAULT: all successes do": {byDefault(), []string{"a-0=0", "b-0=0", "a-1=0"},
			"F#0 Completed(0), a-0#0 Completed(0), a-1#0 Completed(0), b-0#0 Completed(0)"},
		"Service: no end of a task completes it": {service(), []string{"a-0=0", "a-1=1", "a-1=0"},
			"F#0 AttemptRunning, a-0#1 AttemptRunning, a-1#2 AttemptPreparing"},
		"MapReduce: a few failures are all right": {mapReduce(),
			[]string{"map-0=1", "map-1=0", "map-2=0", "map-3=0", "reduce-0=0", "reduce-1=1"},
			"F#0 Completed(0), map-0#0 Completed(1), map-1#0 Completed(0), map-2#0 Completed(0), map-3#0 Completed(0), reduce-0#0 Completed(0), reduce-1#0 Completed(1)"},
		"MapReduce: one failure more fails it at once": {mapReduce(), []string{"map-0=1", "map-2=9"},
			"F#0 Completed(9), map-0#0 Completed(1), map-1#0 Completed(-220), map-2#0 Completed(9), map-3#0 Completed(-220), reduce-0#0 Completed(-220), reduce-1#0 Completed(-220)"},
		"MapReduce: failures of different roles don't add up": {mapReduce(), []string{"map-0=1", "reduce-0=1"},
			"F#0 AttemptRunning, map-0#0 Completed(1), map-1#0 AttemptRunning, map-2#0 AttemptRunning, map-3#0 AttemptRunning, reduce-0#0 Completed(1), reduce-1#0 AttemptRunning"},
		"Master Dominated: workers don't count": {master(), []string{"worker-0=1", "worker-1=0"},
			"F#0 AttemptRunning, master-0#0 AttemptRunning, worker-0#0 Completed(1), worker-1#0 Completed(0)"},
		"Master Dominated: its success is enough": {master(), []string{"worker-0=1", "master-0=0"},
			"F#0 Completed(0), master-0#0 Completed(0), worker-0#0 Completed(1), worker-1#0 Completed(-220)"},
		"Master Dominated: its failure too": {master(), []string{"worker-0=0", "master-0=3"},
			"F#0 Completed(3), master-0#0 Completed(3), worker-0#0 Completed(0), worker-1#0 Completed(-220)"},
		"All Workers Dominated: the parameter server need not end": {allWorkers(), []string{"worker-1=0", "worker-0=0"},
			"F#0 Completed(0), ps-0#0 Completed(-220), worker-0#0 Completed(0), worker-1#0 Completed(0)"},
		"All Workers Dominated: one success is not enough": {allWorkers(), []string{"worker-1=0", "ps-0=0"},
			"F#0 AttemptRunning, ps-0#0 Completed(0), worker-0#0 AttemptRunning, worker-1#0 Completed(0)"},
		"All Workers Dominated: a worker's failure fails it": {allWorkers(), []string{"worker-1=0", "worker-0=5"},
			"F#0 Completed(5), ps-0#0 Completed(-220), worker-0#0 Completed(5), worker-1#0 Completed(0)"},
		"All Workers Dominated: so does the parameter server's": {allWorkers(), []string{"ps-0=6"},
			"F#0 Completed(6), ps-0#0 Completed(6), worker-0#0 Completed(-220), worker-1#0 Completed(-220)"},
		"Any Worker Dominated: one success is enough": {anyWorker(), []string{"worker-0=1", "worker-2=1", "worker-1=0"},
			"F#0 Completed(0), worker-0#0 Completed(1), worker-1#0 Completed(0), worker-2#0 Completed(1)"},
		"Any Worker Dominated: failures go on": {anyWorker(), []string{"worker-0=1", "worker-2=1"},
			"F#0 AttemptRunning, worker-0#0 Completed(1), worker-1#0 AttemptRunning, worker-2#0 Completed(1)"},
		"Any Worker Dominated: until all have failed": {anyWorker(), []string{"worker-0=1", "worker-2=1", "worker-1=4"},
			"F#0 Completed(4), worker-0#0 Completed(1), worker-1#0 Completed(4), worker-2#0 Completed(1)"},
		"zero tasks: nothing completes it":  {framework(of("a", 0, 1, 1)), nil, "F#0 AttemptPreparing"},
		"zero tasks: nor without any roles": {framework(), nil, "F#0 AttemptPreparing"},
	}
	for name, tc := range tests {
		t.Run(name, tc.check)
	}
}

// TestRescaleWalkThrough is the basic example of the manual's chapter on rescale,
// in its twelve steps.
func TestRescaleWalkThrough(t *testing.T) {
	f := framework(role("a", 4))
	policy := &f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy
	policy.MinFailedTaskCount, policy.MinSucceededTaskCount = ptr.To[int32](4), ptr.To[int32](1)
	w := newWorld(t, f)
	uid := func(index int) string {
		task := taskOf(w.readBack(w.written), index)
		if task == nil {
			return ""
		}
		return string(task.InstanceUID)
	}
	scale := func(number int32) {
		f.Spec.TaskRoles[0].TaskNumber = number
		f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To(number)
		f.Generation++
		w.run()
	}
	deletePod := func(name string) {
		w.deletePod(name, 30)
		w.run()
		w.endPod(name)
		w.run()
	}
	expect := func(step, want string) {
		t.Helper()
		if got := transcript(w.readBack(w.written)); got != want {
			t.Errorf("step %s:\n got %s\nwant %s", step, got, want)
		}
	}
	running := func(tasks ...int) string {
		var b strings.Builder
		b.WriteString("F#0 AttemptRunning")
		for _, task := range tasks {
			fmt.Fprintf(&b, ", a-%d#0 AttemptRunning", task)
		}
		return b.String()
	}

	w.run()
	w.runPods()
	expect("1", running(0, 1, 2, 3))

	deletePod("fw-a-2")
	deletePod("fw-a-3")
	expect("2", running(0, 1)+", a-2#0 Completed(-101), a-3#0 Completed(-101)")

	scale(2)
	expect("3 and 4: completed tasks go at once, and don't count for the new policy", running(0, 1))

	scale(4)
	w.runPods()
	expect("5", running(0, 1, 2, 3))

	deletePod("fw-a-2")
	expect("6", running(0, 1)+", a-2#0 Completed(-101), a-3#0 AttemptRunning")

	before2, before3 := uid(2), uid(3)
	scale(2)
	expect("7: a-2 and a-3 are marked", running(0, 1)+", a-2#0 Completed(-101) marked, a-3#0 AttemptDeleting(-230) marked")
	scale(3)
	expect("8: a-2 is replaced at once", running(0, 1)+", a-2#0 AttemptPreparing, a-3#0 AttemptDeleting(-230) marked")
	w.endPod("fw-a-3")
	w.run()
	w.runPods()
	expect("8: a-3 is deleted at last", running(0, 1, 2))
	if uid(2) == before2 {
		t.Error("step 8: a-2 is the task that was scaled down")
	}

	scale(4)
	w.runPods()
	expect("9", running(0, 1, 2, 3))
	if uid(3) == before3 {
		t.Error("step 9: a-3 is the task that was scaled down")
	}

	deletePod("fw-a-2")
	expect("10", running(0, 1)+", a-2#0 Completed(-101), a-3#0 AttemptRunning")

	before2, before3 = uid(2), uid(3)
	scale(2)
	scale(5)
	expect("11 and 12: a-2 is replaced and a-4 added at once", running(0, 1)+
		", a-2#0 AttemptPreparing, a-3#0 AttemptDeleting(-230) marked, a-4#0 AttemptPreparing")
	w.endPod("fw-a-3")
	w.run()
	w.runPods()
	expect("12: a-3 is replaced at last", running(0, 1, 2, 3, 4))
	if uid(2) == before2 || uid(3) == before3 {
		t.Error("step 12: a-2 or a-3 is the task that was scaled down")
	}
}
