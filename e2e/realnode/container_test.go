//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
)

// shellFramework is a Framework of one task that runs a shell script.
func shellFramework(name, retry, script string) string {
	return fmt.Sprintf(`
apiVersion: frameworkcontroller.microsoft.com/v1
kind: Framework
metadata:
  name: %s
spec:
  retryPolicy: %s
  taskRoles:
  - name: main
    taskNumber: 1
    task:
      pod:
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 1
          containers:
          - name: sh
            image: lockstep.dev/toolbox:dev
            imagePullPolicy: Never
            command: ["sh", "-c", %q]
`, name, retry, script)
}

func apply(t *testing.T, manifest string) (namespace string) {
	t.Helper()
	namespace = cluster.Namespace(t)
	if out, err := cluster.KubectlApply(t.Context(), namespace, manifest); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return namespace
}

func TestExitCodeOfAContainerDecides(t *testing.T) {
	type result struct {
		Code              frameworkv1.CompletionCode
		Phrase            string
		Total, Accounted  int32
		ContainerExitCode int32
	}
	for name, tc := range map[string]struct {
		retry, script string
		want          result
	}{
		"success": {
			retry: "{}", script: "exit 0",
			want: result{Code: 0, Phrase: "Succeeded"},
		},
		"permanent failure is not retried": {
			retry: "{fancyRetryPolicy: true, maxRetryCount: 3}", script: "exit 210",
			want: result{Code: 210, Phrase: "ContainerPermanentFailed", ContainerExitCode: 210},
		},
		"transient failure is retried without counting": {
			retry: "{fancyRetryPolicy: true, maxRetryCount: 0}", script: `[ "$FC_FRAMEWORK_ATTEMPT_ID" = 1 ] || exit 200`,
			want: result{Code: 0, Phrase: "Succeeded", Total: 1},
		},
		"unknown failure is retried as often as allowed": {
			retry: "{fancyRetryPolicy: true, maxRetryCount: 1}", script: "exit 42",
			want: result{Code: 42, Phrase: frameworkv1.PhraseContainerUnrecognizedFailed, Total: 1, Accounted: 1, ContainerExitCode: 42},
		},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := apply(t, shellFramework("exits", tc.retry, tc.script))
			done := cluster.WaitFrameworkState(t, namespace, "exits", frameworkv1.FrameworkCompleted).Status
			got := result{
				Code:      done.AttemptStatus.CompletionStatus.Code,
				Phrase:    done.AttemptStatus.CompletionStatus.Phrase,
				Total:     done.RetryPolicyStatus.TotalRetriedCount,
				Accounted: done.RetryPolicyStatus.AccountableRetriedCount,
			}
			if pod := done.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0].AttemptStatus.CompletionStatus.Pod; pod != nil {
				got.ContainerExitCode = pod.Containers[0].Code
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("the end of the Framework (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestEnvironmentInAContainer(t *testing.T) {
	namespace := apply(t, shellFramework("env", "{}", "printenv && sleep 3600"))
	running := cluster.WaitFrameworkState(t, namespace, "env", frameworkv1.FrameworkAttemptRunning)
	log := waitLog(t, namespace, "env-main-0", frameworkv1.KeyTaskAttemptInstanceUID)
	task := running.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses[0]

	got := map[string]string{}
	for line := range strings.Lines(log) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && strings.HasPrefix(name, "FC_") {
			got[name] = value
		}
	}
	want := map[string]string{
		frameworkv1.KeyFrameworkNamespace:          namespace,
		frameworkv1.KeyFrameworkName:               "env",
		frameworkv1.KeyTaskRoleName:                "main",
		frameworkv1.KeyTaskIndex:                   "0",
		frameworkv1.KeyConfigMapName:               "env-attempt",
		frameworkv1.KeyPodName:                     "env-main-0",
		frameworkv1.KeyFrameworkUID:                string(running.UID),
		frameworkv1.KeyFrameworkAttemptID:          "0",
		frameworkv1.KeyFrameworkAttemptInstanceUID: string(*running.Status.AttemptStatus.InstanceUID),
		frameworkv1.KeyConfigMapUID:                string(*running.Status.AttemptStatus.ConfigMapUID),
		frameworkv1.KeyTaskRoleUID:                 string(running.Status.AttemptStatus.TaskRoleStatuses[0].InstanceUID),
		frameworkv1.KeyTaskUID:                     string(task.InstanceUID),
		frameworkv1.KeyTaskAttemptID:               "0",
		frameworkv1.KeyPodUID:                      string(*task.AttemptStatus.PodUID),
		// Resolved by the kubelet, it must be what the status says.
		frameworkv1.KeyTaskAttemptInstanceUID: string(*task.AttemptStatus.InstanceUID),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment of the container (-want,+got):\n%s", diff)
	}
}

func TestTrainingExample(t *testing.T) {
	manifest, err := os.ReadFile("../../examples/training/training.yaml")
	if err != nil {
		t.Fatal(err)
	}
	namespace := apply(t, string(manifest))
	cluster.WaitFramework(t, namespace, "training", "run all workers", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 4
	})
	log := waitLog(t, namespace, "training-worker-0", "loss")
	if !strings.Contains(log, "all peers found") {
		t.Errorf("worker 0 trains, but did not say that it found its peers:\n%s", log)
	}
	done := cluster.WaitFrameworkState(t, namespace, "training", frameworkv1.FrameworkCompleted)
	if status := done.Status.AttemptStatus.CompletionStatus; status.Code != frameworkv1.CodeSucceeded {
		t.Errorf("the training ended with %+v", status)
	}
}

// waitLog waits until the log of a Pod holds a text and returns the log.
func waitLog(t *testing.T, namespace, pod, text string) string {
	t.Helper()
	var log string
	testbed.Eventually(t, fmt.Sprintf("the log of Pod %s to hold %q", pod, text), func(ctx context.Context) (bool, string, error) {
		raw, err := cluster.Kube.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{}).DoRaw(ctx)
		log = string(raw)
		return strings.Contains(log, text), log, err
	})
	return log
}
