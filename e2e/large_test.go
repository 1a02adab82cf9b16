//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestLargeFramework runs a Framework whose task statuses are too large to be
// stored as they are.
func TestLargeFramework(t *testing.T) {
	const tasks = 1500
	fw := jobs.MakeFramework("large").Gang().Role("worker", tasks, jobs.RunForever()).Obj()
	namespace := submit(t, fw)

	running := cluster.WaitFramework(t, namespace, fw.Name, "run all its tasks", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == tasks
	})
	if attempt := running.Status.AttemptStatus; attempt.TaskRoleStatuses != nil || len(attempt.TaskRoleStatusesCompressed) == 0 {
		t.Errorf("the task statuses are not compressed: %d roles in the clear, %d bytes compressed",
			len(attempt.TaskRoleStatuses), len(attempt.TaskRoleStatusesCompressed))
	}
	placed, _, err := gangsIn(t.Context(), namespace)
	if err != nil {
		t.Fatal(err)
	}
	for _, pods := range placed {
		endPods(t, namespace, pods)
	}
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if want, got := (end{TasksSucceeded: tasks, TasksTotal: tasks}), endOf(done); got != want {
		t.Errorf("it ended as %+v, want %+v", got, want)
	}
}
