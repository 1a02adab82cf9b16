//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// elected is the configuration of manifests/controller.
var elected = localenv.ControllerOptions{Config: "leaderElection: {enabled: true}\n"}

// becameLeader is what a replica logs when it becomes the leader.
const becameLeader = "Successfully acquired lease"

// TestReplicasTakeOver lets three replicas lead one after the other: the first is
// killed, the second is asked to end. Frameworks that run meanwhile must not
// notice, and a replica that does not lead must not do anything.
func TestReplicasTakeOver(t *testing.T) {
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)

	first := cluster.StartController(t, elected)
	first.WaitLog(t, becameLeader)
	second := cluster.StartController(t, elected)
	second.WaitReady(t) // a standby is ready too: a rollout must not wait for it to lead

	long := jobs.MakeFramework("long").Role("worker", 3, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, long)
	created := cluster.WaitFrameworkState(t, namespace, long.Name, frameworkv1.FrameworkAttemptRunning)
	// Its first attempt is under way when the leader dies, and over before the
	// next one has found out.
	orphan := jobs.MakeFramework("orphan").Retry(true, 0).
		Role("worker", 3, jobs.RunFor(4*time.Second, 200).InFirstAttempts(1)).Obj()
	cluster.CreateFramework(t, namespace, orphan)
	cluster.WaitFramework(t, namespace, orphan.Name, "run, with all its Pods on record", func(fw *frameworkv1.Framework) bool {
		if fw.Status == nil || fw.Status.State != frameworkv1.FrameworkAttemptRunning {
			return false
		}
		for _, task := range fw.Status.AttemptStatus.TaskRoleStatuses[0].TaskStatuses {
			if task.AttemptStatus.PodUID == nil {
				return false
			}
		}
		return true
	})
	if strings.Contains(second.Log(t), becameLeader) {
		t.Fatal("two replicas lead")
	}
	first.Kill()
	second.WaitLog(t, becameLeader)
	wantEnd(t, namespace, orphan.Name, end{Attempt: 1, Total: 1, TasksSucceeded: 3, TasksTotal: 3})

	third := cluster.StartController(t, elected)
	third.WaitReady(t)
	// Its Pods are just created, and will wait for a node for ever, when the leader
	// is asked to end.
	waits := jobs.MakeFramework("waits").Role("worker", 3, jobs.RunForever().CPU("100k")).Obj()
	cluster.CreateFramework(t, namespace, waits)
	testbed.Eventually(t, "the Pods of "+waits.Name, func(ctx context.Context) (bool, string, error) {
		pods, err := cluster.PodsOf(ctx, namespace, waits.Name)
		return len(pods) == 3, fmt.Sprintf("%d of 3 Pods", len(pods)), err
	})
	if err := second.Terminate(t); err != nil {
		t.Errorf("a leader that is asked to end: %v", err)
	}
	third.WaitLog(t, becameLeader)
	after := jobs.MakeFramework("after").Role("worker", 3, jobs.RunFor(time.Second, 0)).Obj()
	cluster.CreateFramework(t, namespace, after)
	wantEnd(t, namespace, after.Name, end{TasksSucceeded: 3, TasksTotal: 3})

	kept := cluster.WaitFrameworkState(t, namespace, long.Name, frameworkv1.FrameworkAttemptRunning)
	if got, want := *kept.Status.AttemptStatus.InstanceUID, *created.Status.AttemptStatus.InstanceUID; got != want {
		t.Errorf("the attempt that ran all the time is %s, and was %s", got, want)
	}
	recording.CheckQuiet(t)
	// 3 of long, 2 attempts of 3 of orphan, 3 of waits, 3 of after: nothing was made
	// twice.
	if got := recording.Pods(); got != 15 {
		t.Errorf("%d Pods were made, want 15", got)
	}
}
