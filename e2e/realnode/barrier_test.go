//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"net"
	"regexp"
	"strings"
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// barrierFramework has two roles whose containers start when all Pods have an
// address, and print the addresses of each role.
const barrierFramework = `
apiVersion: frameworkcontroller.microsoft.com/v1
kind: Framework
metadata:
  name: barrier
spec:
  taskRoles:
  - name: server
    taskNumber: 2
    task: &task
      pod:
        spec:
          restartPolicy: Never
          terminationGracePeriodSeconds: 1
          serviceAccountName: frameworkbarrier
          containers:
          - name: main
            image: lockstep.dev/toolbox:dev
            imagePullPolicy: Never
            command: ["sh", "-c", "FB_SERVER_PORT=4001 FB_WORKER_PORT=5001; . /mnt/frameworkbarrier/injector.sh && sleep 3600"]
            volumeMounts: [{name: barrier, mountPath: /mnt/frameworkbarrier}]
          initContainers:
          - name: barrier
            image: lockstep.dev/frameworkbarrier:dev
            imagePullPolicy: Never
            volumeMounts: [{name: barrier, mountPath: /mnt/frameworkbarrier}]
          volumes: [{name: barrier, emptyDir: {}}]
  - name: worker
    taskNumber: 1
    task: *task
`

// exported finds what the injector says that it exports.
var exported = regexp.MustCompile(`(FB_\w+)=(\S+)`)

func TestBarrierTellsAddresses(t *testing.T) {
	namespace := cluster.Namespace(t)
	cluster.GrantBarrier(t, namespace)
	if out, err := cluster.KubectlApply(t.Context(), namespace, barrierFramework); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	running := cluster.WaitFramework(t, namespace, "barrier", "run all tasks", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 3
	})
	log := waitLog(t, namespace, "barrier-worker-0", "FB_WORKER_ADDRESSES")
	got := map[string]string{}
	for _, found := range exported.FindAllStringSubmatch(log, -1) {
		got[found[1]] = found[2]
	}
	for _, role := range running.Status.AttemptStatus.TaskRoleStatuses {
		port := map[string]string{"server": "4001", "worker": "5001"}[role.Name]
		var ips, addresses []string
		for _, task := range role.TaskStatuses {
			ips = append(ips, *task.AttemptStatus.PodIP)
			addresses = append(addresses, net.JoinHostPort(*task.AttemptStatus.PodIP, port))
		}
		prefix := "FB_" + strings.ToUpper(role.Name)
		if want := strings.Join(ips, ","); got[prefix+"_IPS"] != want {
			t.Errorf("%s_IPS is %q, want %q", prefix, got[prefix+"_IPS"], want)
		}
		if want := strings.Join(addresses, ","); got[prefix+"_ADDRESSES"] != want {
			t.Errorf("%s_ADDRESSES is %q, want %q", prefix, got[prefix+"_ADDRESSES"], want)
		}
	}
	if t.Failed() {
		t.Log(log)
	}
}

// TestBarrierWithoutItsRole ends at once and says what is missing.
func TestBarrierWithoutItsRole(t *testing.T) {
	manifest := strings.ReplaceAll(barrierFramework, "serviceAccountName: frameworkbarrier", "serviceAccountName: default")
	namespace := apply(t, manifest)
	done := cluster.WaitFrameworkState(t, namespace, "barrier", frameworkv1.FrameworkCompleted)
	diagnostics := done.Status.AttemptStatus.CompletionStatus.Diagnostics
	for _, want := range []string{"manifests/barrier", "frameworks", namespace} {
		if !strings.Contains(diagnostics, want) {
			t.Errorf("the diagnostics don't name %q: %s", want, diagnostics)
		}
	}
}
