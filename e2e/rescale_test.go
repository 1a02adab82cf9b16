//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// patchSpec applies a JSON patch, as a client of FrameworkController does.
func patchSpec(t *testing.T, namespace, name, patch string) {
	t.Helper()
	if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Patch(t.Context(), name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// tasksOf is what a role's tasks do, in a line: "Running Completed* Running",
// with a star for those that are being scaled down.
func tasksOf(fw *frameworkv1.Framework, role string) string {
	var states []string
	for index := 0; task(fw, role, index) != nil; index++ {
		task := task(fw, role, index)
		state := strings.TrimPrefix(string(task.State), "Attempt")
		if task.DeletionPending {
			state += "*"
		}
		states = append(states, state)
	}
	return strings.Join(states, " ")
}

// walk is a Framework that is rescaled step by step.
type walk struct {
	t         *testing.T
	namespace string
	name      string
}

// scale sets taskNumber and minFailedTaskCount in one update.
func (w walk) scale(n int) {
	w.t.Helper()
	patchSpec(w.t, w.namespace, w.name, fmt.Sprintf(`[
		{"op": "test", "path": "/spec/taskRoles/0/name", "value": "a"},
		{"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": %d},
		{"op": "replace", "path": "/spec/taskRoles/0/frameworkAttemptCompletionPolicy/minFailedTaskCount", "value": %[1]d}]`, n))
}

// wait waits until the Framework runs and its tasks are what is wanted.
func (w walk) wait(step, want string) *frameworkv1.Framework {
	w.t.Helper()
	return cluster.WaitFramework(w.t, w.namespace, w.name, "have the tasks "+want+" in step "+step, func(fw *frameworkv1.Framework) bool {
		if fw.Status != nil && fw.Status.AttemptStatus.CompletionStatus != nil {
			w.t.Fatalf("step %s has completed the attempt: %s", step, localenv.DescribeFramework(fw))
		}
		return tasksOf(fw, "a") == want
	})
}

// fail deletes the Pod of a task and lets it go.
func (w walk) fail(index int) {
	w.t.Helper()
	cluster.DeletePod(w.t, w.namespace, fmt.Sprintf("%s-a-%d", w.name, index))
	cluster.Release(w.t, w.namespace)
}

// TestRescaleWalkThrough is the basic example of FrameworkController's chapter on
// rescale, in its twelve steps. A Pod that is deleted stays until it is released,
// so that there is time for what has to come before.
func TestRescaleWalkThrough(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	fw := jobs.MakeFramework("rescalebasic").
		Role("a", 4, jobs.RunForever().Completes(4, 1).GracefulDeletionTimeout(600).Held()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	w := walk{t: t, namespace: namespace, name: fw.Name}
	uid := func(fw *frameworkv1.Framework, index int) types.UID { return task(fw, "a", index).InstanceUID }

	w.wait("1", "Running Running Running Running")
	w.fail(2)
	w.fail(3)
	w.wait("2", "Running Running Completed Completed")
	w.scale(2) // 3
	// Were they counted still, two failed tasks would now complete the attempt.
	w.wait("4", "Running Running")
	w.scale(4)
	w.wait("5", "Running Running Running Running")
	w.fail(2)
	before := w.wait("6", "Running Running Completed Running")

	w.scale(2)
	w.wait("7", "Running Running Completed* Deleting*")
	w.scale(3)
	replaced := w.wait("8, before the Pod is gone", "Running Running Running Deleting*")
	cluster.Release(t, namespace)
	w.wait("8", "Running Running Running")
	w.scale(4)
	added := w.wait("9", "Running Running Running Running")
	if uid(replaced, 2) == uid(before, 2) || uid(added, 3) == uid(before, 3) {
		t.Error("a task that was scaled down has come back, instead of a new one")
	}

	w.fail(2)
	before = w.wait("10", "Running Running Completed Running")
	w.scale(2)
	w.wait("11", "Running Running Completed* Deleting*")
	w.scale(5)
	w.wait("12, before the Pod is gone", "Running Running Running Deleting* Running")
	cluster.Release(t, namespace)
	after := w.wait("12", "Running Running Running Running Running")
	if uid(after, 2) == uid(before, 2) || uid(after, 3) == uid(before, 3) {
		t.Error("a task that was scaled down has come back, instead of a new one")
	}
	if got := after.Status.AttemptStatus.ID; got != 0 {
		t.Errorf("it is in attempt %d, want the first", got)
	}
	recording.Check(t)
}

// TestTaskRolesComeAndGo adds a role to a Framework and takes another one away.
func TestTaskRolesComeAndGo(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	fw := jobs.MakeFramework("roles").
		Role("a", 2, jobs.RunForever()).Role("b", 2, jobs.RunForever().GracefulDeletionTimeout(600)).Obj()
	cluster.CreateFramework(t, namespace, fw)
	roles := func(what string, want map[string]string) {
		t.Helper()
		cluster.WaitFramework(t, namespace, fw.Name, what, func(fw *frameworkv1.Framework) bool {
			if fw.Status == nil || len(fw.Status.AttemptStatus.TaskRoleStatuses) != len(want) {
				return false
			}
			for role, tasks := range want {
				if tasksOf(fw, role) != tasks {
					return false
				}
			}
			return true
		})
	}
	roles("run both roles", map[string]string{"a": "Running Running", "b": "Running Running"})
	steady := podUIDs(t, namespace, fw.Name)["roles-b-0"]

	patchSpec(t, namespace, fw.Name, `[{"op": "add", "path": "/spec/taskRoles/-", "value": {"name": "c", "taskNumber": 1,
		"task": {"pod": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "lockstep.dev/simulated:any"}]}}}}}]`)
	roles("run the new role too", map[string]string{"a": "Running Running", "b": "Running Running", "c": "Running"})

	patchSpec(t, namespace, fw.Name, `[{"op": "test", "path": "/spec/taskRoles/0/name", "value": "a"}, {"op": "remove", "path": "/spec/taskRoles/0"}]`)
	roles("be rid of the first role", map[string]string{"b": "Running Running", "c": "Running"})
	if got := podUIDs(t, namespace, fw.Name); got["roles-b-0"] != steady || len(got) != 3 {
		t.Errorf("the Pods are %v, want those of b and c, of which %s has stayed", got, steady)
	}

	_, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Patch(t.Context(), fw.Name, types.JSONPatchType,
		[]byte(`[{"op": "test", "path": "/spec/taskRoles/0/name", "value": "a"}, {"op": "remove", "path": "/spec/taskRoles/0"}]`), metav1.PatchOptions{})
	if err == nil {
		t.Error("a patch that tests for a role that is not there was taken")
	}
	recording.Check(t)
}
