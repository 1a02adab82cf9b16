//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// trigger finds the triggers of the history in a log.
var trigger = regexp.MustCompile(`: (On\w+): ObjectSnapshot: \{.*"name":"short`)

// TestCompletedFrameworkIsDeleted when it has been kept as long as configured,
// and leaves its history in the log, but for the values of secret variables.
func TestCompletedFrameworkIsDeleted(t *testing.T) {
	const retained = 8
	controller := cluster.StartController(t, localenv.ControllerOptions{Config: fmt.Sprintf("frameworkCompletedRetainSec: %d\n", retained)})
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	fw := jobs.MakeFramework("short").Retry(false, 1).
		Role("worker", 1, jobs.RunFor(time.Second, 7).InFirstAttempts(1).GracefulDeletionTimeout(600).Env("API_TOKEN", "hunter2")).Obj()
	cluster.CreateFramework(t, namespace, fw)
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	cluster.WaitFrameworkGone(t, namespace, fw.Name)
	if kept := time.Since(done.Status.CompletionTime.Time); kept < retained*time.Second {
		t.Errorf("it was deleted %v after it had completed, want at least %ds", kept, retained)
	}
	recording.Check(t)

	want := []string{"OnPodDeletion", "OnFrameworkRetry", "OnPodDeletion", "OnFrameworkDeletion", "OnFrameworkDeletion"}
	testbed.Eventually(t, "the whole history in the log", func(context.Context) (bool, string, error) {
		var got []string
		for _, found := range trigger.FindAllStringSubmatch(controller.Log(t), -1) {
			got = append(got, found[1])
		}
		diff := cmp.Diff(want, got)
		return diff == "", diff, nil
	})
	log := controller.Log(t)
	if masked := `{"name":"API_TOKEN","value":"***"}`; strings.Contains(log, "hunter2") || strings.Count(log, masked) != len(want) {
		t.Errorf("the log has a secret, or not %s in each of the %d lines", masked, len(want))
	}
}

// TestStatusThatIsTooLarge is one that the API server refuses, because compression
// is off. It is reported, and stored compressed all the same; neither this
// Framework nor any other is held up.
func TestStatusThatIsTooLarge(t *testing.T) {
	const tasks = 10000
	cluster.StartController(t, localenv.ControllerOptions{Config: "largeFrameworkCompression: false\n"})
	namespace := cluster.Namespace(t)
	// One that is not started has a status of all its tasks, without their Pods.
	large := jobs.MakeFramework("large").Execution(frameworkv1.ExecutionCreate).
		Role("worker", tasks, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, large)
	small := jobs.MakeFramework("small").Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj()
	cluster.CreateFramework(t, namespace, small)

	wantEnd(t, namespace, small.Name, end{TasksSucceeded: 2, TasksTotal: 2})
	stored := cluster.WaitFramework(t, namespace, large.Name, "have a status", func(fw *frameworkv1.Framework) bool { return fw.Status != nil })
	if !meta.IsStatusConditionTrue(stored.Status.Conditions, frameworkv1.ConditionStatusTooLarge) {
		t.Errorf("the conditions don't tell: %+v", stored.Status.Conditions)
	}
	if len(stored.Status.AttemptStatus.TaskRoleStatusesCompressed) == 0 {
		t.Error("the tasks are not stored compressed")
	}
	testbed.Eventually(t, "an event that tells", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=involvedObject.name="+large.Name, "-o", "jsonpath={.items[*].reason}")
		return strings.Contains(out, "StatusTooLarge"), out, err
	})
	if out, err := cluster.Kubectl(t.Context(), "patch", "framework", large.Name, "-n", namespace, "--type=json",
		"-p", `[{"op": "replace", "path": "/spec/executionType", "value": "Stop"}]`); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantEnd(t, namespace, large.Name, end{Code: frameworkv1.CodeStopFrameworkRequested, TasksTotal: tasks})
}
