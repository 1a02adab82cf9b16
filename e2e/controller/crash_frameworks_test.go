//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// frameworksOfALife is how many Frameworks of one sort come one after the other.
const frameworksOfALife = 6

// end is what a completed Framework shows of its last attempt and its retries.
type end struct {
	Code                       frameworkv1.CompletionCode
	Attempt, Total, Accounted  int32
	TasksSucceeded, TasksTotal int32
}

func endOf(fw *frameworkv1.Framework) end {
	return end{
		Code:           fw.Status.AttemptStatus.CompletionStatus.Code,
		Attempt:        fw.Status.AttemptStatus.ID,
		Total:          fw.Status.RetryPolicyStatus.TotalRetriedCount,
		Accounted:      fw.Status.RetryPolicyStatus.AccountableRetriedCount,
		TasksSucceeded: fw.Status.Tasks.Succeeded, TasksTotal: fw.Status.Tasks.Total,
	}
}

// frameworkLives are lives of Frameworks of all sorts.
func frameworkLives() map[string]life {
	return map[string]life{
		"that succeed": ends(end{TasksSucceeded: 3, TasksTotal: 3}, func(name string) *jobs.FrameworkBuilder {
			return jobs.MakeFramework(name).Role("worker", 3, jobs.RunFor(time.Second, 0))
		}),
		"whose attempts are retried for free": ends(end{Attempt: 2, Total: 2, TasksSucceeded: 3, TasksTotal: 3}, func(name string) *jobs.FrameworkBuilder {
			return jobs.MakeFramework(name).Retry(true, 0).Role("worker", 3, jobs.RunFor(time.Second, 200).InFirstAttempts(2))
		}),
		"with an attempt whose retry counts": ends(end{Code: 9, Attempt: 1, Total: 1, Accounted: 1, TasksTotal: 2}, func(name string) *jobs.FrameworkBuilder {
			return jobs.MakeFramework(name).Retry(false, 1).Role("worker", 2, jobs.RunFor(time.Second, 9))
		}),
		"that are gangs": ends(end{TasksSucceeded: 4, TasksTotal: 4}, func(name string) *jobs.FrameworkBuilder {
			return jobs.MakeFramework(name).Gang().Role("worker", 4, jobs.RunFor(time.Second, 0))
		}),
		"whose tasks are retried": ends(end{TasksSucceeded: 3, TasksTotal: 3}, func(name string) *jobs.FrameworkBuilder {
			return jobs.MakeFramework(name).Role("worker", 3, jobs.RunFor(time.Second, 5).Retry(false, 2).InFirstTaskAttempts(2))
		}),
		"that are rescaled and stopped": rescaledAndStopped,
		"whose Pods are made once":      madeOnce,
	}
}

// ends is the life of Frameworks that all end alike.
func ends(want end, make func(name string) *jobs.FrameworkBuilder) life {
	return func(t *testing.T, namespace string, pause func(time.Duration)) {
		recording := cluster.Record(t, namespace)
		var names []string
		for i := range frameworksOfALife {
			names = append(names, fmt.Sprintf("life%d", i))
			cluster.CreateFramework(t, namespace, make(names[i]).Obj())
			pause(3 * time.Second)
		}
		for _, name := range names {
			wantEnd(t, namespace, name, want)
		}
		recording.CheckQuiet(t)
		wantNoPods(t, namespace)
	}
}

// rescaledAndStopped is the life of a Framework that is rescaled again and again, and then stopped.
func rescaledAndStopped(t *testing.T, namespace string, pause func(time.Duration)) {
	const name, workers = "rescaled", 3
	recording := cluster.Record(t, namespace)
	cluster.CreateFramework(t, namespace, jobs.MakeFramework(name).Role("worker", 2, jobs.RunForever()).Obj())
	patch := func(path string, value any) {
		t.Helper()
		patch := fmt.Appendf(nil, `[{"op": "replace", "path": %q, "value": %v}]`, path, value)
		if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Patch(t.Context(), name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []int{5, 1, 6, 0, 4, 2, 5, workers} {
		pause(3 * time.Second)
		patch("/spec/taskRoles/0/taskNumber", n)
	}
	cluster.WaitFramework(t, namespace, name, fmt.Sprintf("run %d workers", workers), func(fw *frameworkv1.Framework) bool {
		if fw.Status == nil || fw.Status.Tasks == nil {
			return false
		}
		tasks := fw.Status.Tasks
		return fw.Status.ObservedGeneration == fw.Generation && tasks.Total == workers && tasks.Running == workers
	})
	patch("/spec/executionType", `"Stop"`)
	wantEnd(t, namespace, name, end{Code: frameworkv1.CodeStopFrameworkRequested, TasksTotal: workers})
	recording.CheckQuiet(t)
	wantNoPods(t, namespace)
}

// madeOnce is the life of gangs that start. A controller adopts what the one before it has created and
// not recorded, so no Pod is made twice.
func madeOnce(t *testing.T, namespace string, pause func(time.Duration)) {
	const gangs, tasks = 12, 8
	recording := cluster.Record(t, namespace)
	for i := range gangs {
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(fmt.Sprintf("gang-%d", i)).Gang().Role("worker", tasks, jobs.RunForever()).Obj())
		pause(time.Second)
	}
	for i := range gangs {
		fw := cluster.WaitFramework(t, namespace, fmt.Sprintf("gang-%d", i), "run with all tasks", func(fw *frameworkv1.Framework) bool {
			return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == tasks
		})
		if retries := fw.Status.RetryPolicyStatus.TotalRetriedCount; retries != 0 {
			t.Errorf("%s was retried %d times", fw.Name, retries)
		}
	}
	recording.CheckQuiet(t)
	if got, want := recording.Pods(), gangs*tasks; got != want {
		t.Errorf("%d Pods were made, want %d: each once", got, want)
	}
}

// wantEnd waits until a Framework has completed, and holds that it ended so.
func wantEnd(t *testing.T, namespace, name string, want end) {
	t.Helper()
	done := cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
	if got := endOf(done); got != want {
		t.Errorf("%s ended as %+v, want %+v", name, got, want)
	}
}

// wantNoPods holds that a namespace has no Pod.
func wantNoPods(t *testing.T, namespace string) {
	t.Helper()
	pods, err := cluster.Kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) != 0 {
		t.Errorf("%d Pods are left", len(pods.Items))
	}
}
