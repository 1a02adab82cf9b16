//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// submit creates a Framework in a new namespace and returns the namespace.
func submit(t *testing.T, fw *frameworkv1.Framework) string {
	t.Helper()
	namespace := cluster.Namespace(t)
	cluster.CreateFramework(t, namespace, fw)
	return namespace
}

// end is what a completed Framework shows of its last attempt and its retries.
type end struct {
	Code                       frameworkv1.CompletionCode
	Attempt, Total, Accounted  int32
	TasksSucceeded, TasksTotal int32
}

func endOf(fw *frameworkv1.Framework) end {
	e := end{
		Attempt:   fw.Status.AttemptStatus.ID,
		Total:     fw.Status.RetryPolicyStatus.TotalRetriedCount,
		Accounted: fw.Status.RetryPolicyStatus.AccountableRetriedCount,
	}
	if done := fw.Status.AttemptStatus.CompletionStatus; done != nil {
		e.Code = done.Code
	}
	if tasks := fw.Status.Tasks; tasks != nil {
		e.TasksSucceeded, e.TasksTotal = tasks.Succeeded, tasks.Total
	}
	return e
}

func TestFrameworkCompletes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fw   *frameworkv1.Framework
		want end
	}{
		"when all its tasks succeed": {
			fw:   jobs.MakeFramework("succeeds").Role("worker", 3, jobs.RunFor(time.Second, 0)).Obj(),
			want: end{Code: 0, TasksSucceeded: 3, TasksTotal: 3},
		},
		"when one task fails": {
			fw: jobs.MakeFramework("fails").
				Role("bad", 1, jobs.RunFor(time.Second, 3)).
				Role("good", 2, jobs.RunForever()).Obj(),
			want: end{Code: 3, TasksTotal: 3},
		},
		"when enough tasks of a role succeed": {
			fw: jobs.MakeFramework("master").
				Role("master", 1, jobs.RunFor(time.Second, 0).Completes(1, 1)).
				Role("worker", 2, jobs.RunForever()).Obj(),
			want: end{Code: 0, TasksSucceeded: 1, TasksTotal: 3},
		},
		"in its second attempt after a transient failure, which is not counted": {
			fw: jobs.MakeFramework("transient").Retry(true, 0).
				Role("worker", 2, jobs.RunFor(time.Second, 200).InFirstAttempts(1)).Obj(),
			want: end{Code: 0, Attempt: 1, Total: 1, TasksSucceeded: 2, TasksTotal: 2},
		},
		"without a retry after a permanent failure": {
			fw: jobs.MakeFramework("permanent").Retry(true, 5).
				Role("worker", 1, jobs.RunFor(time.Second, 210)).Obj(),
			want: end{Code: 210, TasksTotal: 1},
		},
		"after as many counted retries as its policy has": {
			fw: jobs.MakeFramework("counted").Retry(true, 2).
				Role("worker", 1, jobs.RunFor(time.Second, 7)).Obj(),
			want: end{Code: 7, Attempt: 2, Total: 2, Accounted: 2, TasksTotal: 1},
		},
		"as a gang": {
			fw: jobs.MakeFramework("gang").Gang().
				Role("worker", 5, jobs.RunFor(time.Second, 0)).Obj(),
			want: end{Code: 0, TasksSucceeded: 5, TasksTotal: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := submit(t, tc.fw)
			done := cluster.WaitFrameworkState(t, namespace, tc.fw.Name, frameworkv1.FrameworkCompleted)
			if diff := cmp.Diff(tc.want, endOf(done)); diff != "" {
				t.Errorf("the end of the Framework (-want,+got):\n%s", diff)
			}
			pods, err := cluster.PodsOf(t.Context(), namespace, tc.fw.Name)
			if err != nil {
				t.Fatal(err)
			}
			if len(pods) != 0 {
				t.Errorf("%d Pods are left after the Framework completed", len(pods))
			}
		})
	}
}

func TestTaskIsRetriedWhileTheOthersRunOn(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("taskretry").
		Role("flaky", 1, jobs.RunFor(time.Second, 5).Retry(false, 1)).
		Role("steady", 1, jobs.RunForever()).Obj()
	namespace := submit(t, fw)

	var steady types.UID
	cluster.WaitFramework(t, namespace, fw.Name, "retry its flaky task", func(fw *frameworkv1.Framework) bool {
		if flaky := task(fw, "flaky", 0); flaky == nil || flaky.AttemptStatus.ID != 1 {
			return false
		}
		uid := task(fw, "steady", 0).AttemptStatus.PodUID
		if uid == nil {
			return false
		}
		steady = *uid
		return true
	})
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if got := *task(done, "steady", 0).AttemptStatus.PodUID; got != steady {
		t.Errorf("the steady task's Pod changed from %s to %s", steady, got)
	}
	want := end{Code: 5, TasksTotal: 2}
	if diff := cmp.Diff(want, endOf(done)); diff != "" {
		t.Errorf("the end of the Framework (-want,+got):\n%s", diff)
	}
	if trigger := done.Status.AttemptStatus.CompletionStatus.Trigger; trigger == nil || trigger.TaskRoleName != "flaky" {
		t.Errorf("the trigger is %+v, want task 0 of role flaky", trigger)
	}
}

func TestRescaleOfARunningFramework(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("rescale").Role("worker", 3, jobs.RunForever()).Obj()
	namespace := submit(t, fw)
	running := func(n int32) {
		t.Helper()
		cluster.WaitFramework(t, namespace, fw.Name, fmt.Sprintf("run exactly %d tasks", n), func(fw *frameworkv1.Framework) bool {
			s := fw.Status
			return s != nil && s.Tasks != nil && s.Tasks.Total == n && s.Tasks.Running == n && len(s.AttemptStatus.TaskRoleStatuses[0].TaskStatuses) == int(n)
		})
		testbed.Eventually(t, fmt.Sprintf("%d Pods", n), func(ctx context.Context) (bool, string, error) {
			pods, err := cluster.PodsOf(ctx, namespace, fw.Name)
			return len(pods) == int(n), fmt.Sprintf("%d Pods", len(pods)), err
		})
	}
	running(3)
	for _, n := range []int32{1, 5, 2} {
		patch := fmt.Sprintf(`[{"op": "test", "path": "/spec/taskRoles/0/name", "value": "worker"}, {"op": "replace", "path": "/spec/taskRoles/0/taskNumber", "value": %d}]`, n)
		if _, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Patch(t.Context(), fw.Name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		running(n)
	}
}

// task finds a task in a Framework's status; nil if it is not there.
func task(fw *frameworkv1.Framework, role string, index int) *frameworkv1.TaskStatus {
	if fw.Status == nil {
		return nil
	}
	for _, r := range fw.Status.AttemptStatus.TaskRoleStatuses {
		if r.Name == role && index < len(r.TaskStatuses) {
			return r.TaskStatuses[index]
		}
	}
	return nil
}
