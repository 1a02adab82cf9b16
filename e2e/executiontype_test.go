//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

func TestExecutionType(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("steps").Execution(frameworkv1.ExecutionCreate).
		Role("worker", 2, jobs.RunForever()).Obj()
	namespace := submit(t, fw)

	cluster.WaitFramework(t, namespace, fw.Name, "have its tasks planned", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Total == 2
	})
	testbed.Consistently(t, "a Framework that is only created has no Pods", 2*time.Second, func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.PodsOf(ctx, namespace, fw.Name)
		return len(pods) == 0, fmt.Sprintf("%d Pods", len(pods)), err
	})

	setExecutionType(t, namespace, fw.Name, frameworkv1.ExecutionStart)
	cluster.WaitFramework(t, namespace, fw.Name, "run both tasks", func(fw *frameworkv1.Framework) bool {
		return fw.Status.Tasks != nil && fw.Status.Tasks.Running == 2
	})

	setExecutionType(t, namespace, fw.Name, frameworkv1.ExecutionStop)
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if code := done.Status.AttemptStatus.CompletionStatus.Code; code != frameworkv1.CodeStopFrameworkRequested {
		t.Errorf("the completion code is %d, want %d", code, frameworkv1.CodeStopFrameworkRequested)
	}
}

func setExecutionType(t *testing.T, namespace, name string, executionType frameworkv1.ExecutionType) {
	t.Helper()
	// The patch that FrameworkController's user manual documents.
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/executionType", "value": %q}]`, executionType)
	patchSpec(t, namespace, name, patch)
}

// TestStopDuringARetryDelay ends the wait: the next attempt begins, and is stopped
// before anything of it runs.
func TestStopDuringARetryDelay(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("waits").Retry(true, 0).
		Role("worker", 2, jobs.RunFor(time.Second, 201)).Obj()
	namespace := submit(t, fw)
	waiting := cluster.WaitFramework(t, namespace, fw.Name, "wait for its retry", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.RetryPolicyStatus.RetryDelaySec != nil
	})
	if got := waiting.Status.AttemptStatus.CompletionStatus.Code; got != frameworkv1.CodeContainerTransientConflictFailed {
		t.Errorf("the first attempt ended with %d, want 201", got)
	}
	if delay := *waiting.Status.RetryPolicyStatus.RetryDelaySec; delay < 60 || delay > 900 {
		t.Errorf("the delay is %d s, want 60 to 900", delay)
	}
	setExecutionType(t, namespace, fw.Name, frameworkv1.ExecutionStop)
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	want := end{Code: frameworkv1.CodeStopFrameworkRequested, Attempt: 1, Total: 1, TasksTotal: 2}
	if diff := cmp.Diff(want, endOf(done)); diff != "" {
		t.Errorf("the end of the Framework (-want,+got):\n%s", diff)
	}
}

// runScript runs a script of examples/ in a namespace, as a user does, and
// returns the folder in which it ran.
func runScript(t *testing.T, namespace, name string) string {
	t.Helper()
	dir := t.TempDir()
	kubeconfig, err := os.ReadFile(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(own, kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := cluster.Kubectl(t.Context(), "--kubeconfig", own, "config", "set-context", "--current", "--namespace", namespace); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	script, err := filepath.Abs(filepath.Join("..", "examples", name))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "KUBECONFIG="+own, "PATH="+cluster.Bin()+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
	return dir
}

// TestPreStartExample makes a ServiceAccount that a Framework owns before its
// Pods, which need it, are made.
func TestPreStartExample(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	runScript(t, namespace, "prestart.sh")
	pods, err := cluster.PodsOf(t.Context(), namespace, "prestart")
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 4 {
		t.Errorf("%d Pods run, want 4", len(pods))
	}
	for _, pod := range pods {
		if got := pod.Spec.ServiceAccountName; got != "prestart" {
			t.Errorf("Pod %s runs as %q", pod.Name, got)
		}
	}
	deleteFramework(t, namespace, "prestart", metav1.DeletePropagationForeground)
	testbed.Eventually(t, "the ServiceAccount to go with the Framework", func(ctx context.Context) (bool, string, error) {
		_, err := cluster.Kube.CoreV1().ServiceAccounts(namespace).Get(ctx, "prestart", metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there", nil
	})
}

// TestPostStopExample stops a Framework, keeps its record, and deletes it.
func TestPostStopExample(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	dir := runScript(t, namespace, "poststop.sh")
	archived, err := os.ReadFile(filepath.Join(dir, "poststop.json"))
	if err != nil {
		t.Fatal(err)
	}
	var fw frameworkv1.Framework
	if err := json.Unmarshal(archived, &fw); err != nil {
		t.Fatal(err)
	}
	want := end{Code: frameworkv1.CodeStopFrameworkRequested, TasksTotal: 4}
	if diff := cmp.Diff(want, endOf(&fw)); diff != "" {
		t.Errorf("the end of the archived Framework (-want,+got):\n%s", diff)
	}
	cluster.WaitFrameworkGone(t, namespace, "poststop")
}

// TestFieldsOfATemplateThatTheAPIServerDoesNotKnowAreNamed by the words of a real one.
func TestFieldsOfATemplateThatTheAPIServerDoesNotKnowAreNamed(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("mistyped").Execution(frameworkv1.ExecutionCreate).
		Role("worker", 1, jobs.RunForever()).Role("right", 1, jobs.RunForever()).Obj()
	pod := &fw.Spec.TaskRoles[0].Task.Pod
	pod.Raw = bytes.Replace(pod.Raw, []byte(`"containers":[{`), []byte(`"containers":[{"resurces":{"limits":{"cpu":"1"}},`), 1)
	namespace := submit(t, fw)
	cluster.WaitFramework(t, namespace, fw.Name, "name the field", func(fw *frameworkv1.Framework) bool {
		if fw.Status == nil {
			return false
		}
		told := meta.FindStatusCondition(fw.Status.Conditions, frameworkv1.ConditionUnknownFields)
		return told != nil && told.Message == "spec.taskRoles[0].task.pod.spec.containers[0].resurces: unknown field"
	})
}
