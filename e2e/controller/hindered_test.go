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

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// refusedPods is how often the controller has asked in vain for a Pod.
const refusedPods = `lockstep_controller_actions_total{kind="CreatePod",result="error"}`

// TestAnExhaustedQuotaCostsFewRequests leaves a Framework of many tasks without room
// for most of its Pods. It asks seldom, says why it waits, holds nobody else up, and
// uses the room that appears.
func TestAnExhaustedQuotaCostsFewRequests(t *testing.T) {
	const tasks, room = 200, 5
	controller := cluster.StartController(t, localenv.ControllerOptions{})
	controller.WaitReady(t)
	namespace := cluster.Namespace(t)
	setQuota(t, namespace, room)
	fw := jobs.MakeFramework("poor").Role("worker", tasks, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	waitBlocked(t, namespace, fw.Name, frameworkv1.ReasonQuotaExceeded, "exceeded quota: pods")

	wantUntroubled(t)
	before, logged := waitSeldomRefused(t, controller), refusals(controller.Log(t))
	if most := 20; before > most {
		t.Errorf("the controller has asked %d times in vain in the beginning, want at most %d", before, most)
	}
	time.Sleep(time.Minute) // The requests of this minute are counted.
	asked, told := controller.Counter(t, refusedPods)-before, refusals(controller.Log(t))-logged
	if most := 3; asked > most || told > most {
		t.Errorf("in a minute the controller has asked %d times in vain and written %d lines, want at most %d", asked, told, most)
	}

	setQuota(t, namespace, tasks)
	freed := time.Now()
	cluster.WaitFrameworkWithin(t, time.Minute, namespace, fw.Name, "use the room", func(fw *frameworkv1.Framework) bool {
		pods, err := cluster.PodsOf(t.Context(), namespace, fw.Name)
		return err == nil && len(pods) > room
	})
	t.Logf("the room was used after %v", time.Since(freed).Round(time.Second))
	waitUnblocked(t, namespace, fw.Name, tasks)
}

// waitSeldomRefused waits until the back-off, which grows to half a minute, has come half
// of the way. It returns how often the controller has asked in vain for a Pod.
func waitSeldomRefused(t *testing.T, controller *testbed.Controller) int {
	t.Helper()
	const distance = 15 * time.Second
	asked, last := 0, time.Now()
	testbed.EventuallyWithin(t, 3*time.Minute, "two refusals that lie far from each other", func(context.Context) (bool, string, error) {
		now := controller.Counter(t, refusedPods)
		if now == asked {
			return false, fmt.Sprintf("%d refusals, the last %v ago", asked, time.Since(last).Round(time.Second)), nil
		}
		far := time.Since(last) >= distance
		asked, last = now, time.Now()
		return far, fmt.Sprintf("%d refusals", asked), nil
	})
	return asked
}

// refusals is how many lines of a log tell of requests that have failed.
func refusals(log string) int {
	return strings.Count(log, "exceeded quota")
}

// setQuota allows a number of Pods in a namespace.
func setQuota(t *testing.T, namespace string, pods int64) {
	t.Helper()
	quotas := cluster.Kube.CoreV1().ResourceQuotas(namespace)
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(pods, resource.DecimalSI)}},
	}
	set := quotas.Update
	if _, err := quotas.Get(t.Context(), quota.Name, metav1.GetOptions{}); err != nil {
		if _, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	} else if _, err := set(t.Context(), quota, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The quota counts once its controller has seen it.
	testbed.Eventually(t, "the quota to be in force", func(ctx context.Context) (bool, string, error) {
		quota, err := quotas.Get(ctx, quota.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		hard := quota.Status.Hard.Pods()
		return hard.Value() == pods, fmt.Sprintf("%+v", quota.Status), nil
	})
}

// waitBlocked waits until a condition and an event say what a Framework waits for.
func waitBlocked(t *testing.T, namespace, name, reason, text string) {
	t.Helper()
	cluster.WaitFramework(t, namespace, name, "say that it waits for "+reason, func(fw *frameworkv1.Framework) bool {
		if fw.Status == nil {
			return false
		}
		blocked := meta.FindStatusCondition(fw.Status.Conditions, frameworkv1.ConditionTasksBlocked)
		return blocked != nil && blocked.Status == metav1.ConditionTrue && blocked.Reason == reason && strings.Contains(blocked.Message, text)
	})
	testbed.Eventually(t, "an event that says so", func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "events", "-n", namespace, "--field-selector=type=Warning,reason="+reason+",involvedObject.name="+name,
			"-o", "jsonpath={.items[*].message}")
		return strings.Contains(out, text), out, err
	})
}

// waitUnblocked waits until a Framework runs with a number of tasks, and no condition says
// that it waits.
func waitUnblocked(t *testing.T, namespace, name string, tasks int32) {
	t.Helper()
	cluster.WaitFramework(t, namespace, name, "run with all tasks, not blocked any more", func(fw *frameworkv1.Framework) bool {
		return fw.Status.Tasks.Running == tasks && !meta.IsStatusConditionTrue(fw.Status.Conditions, frameworkv1.ConditionTasksBlocked)
	})
}

// wantUntroubled wants a Framework of somebody else to come to its end as fast as ever.
func wantUntroubled(t *testing.T) {
	t.Helper()
	const most = 30 * time.Second // It takes about three.
	namespace, begun := cluster.Namespace(t), time.Now()
	cluster.CreateFramework(t, namespace, jobs.MakeFramework("untroubled").Role("worker", 2, jobs.RunFor(time.Second, 0)).Obj())
	wantEnd(t, namespace, "untroubled", end{TasksSucceeded: 2, TasksTotal: 2})
	if took := time.Since(begun); took > most {
		t.Errorf("a Framework of another namespace took %v, want at most %v", took.Round(time.Second), most)
	}
}

// TestANameThatIsTakenHoldsBackNoOtherTask has a Pod of somebody else under the name of
// one of a Framework's. All its other tasks run, the user is told whose name is taken,
// the foreign Pod stays, and its end frees the task.
func TestANameThatIsTakenHoldsBackNoOtherTask(t *testing.T) {
	cluster.StartController(t, localenv.ControllerOptions{}).WaitReady(t)
	namespace := cluster.Namespace(t)
	foreign, err := cluster.Kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "held-a-1"},
		Spec: corev1.PodSpec{
			SchedulerName: "nobody",
			Containers:    []corev1.Container{{Name: "main", Image: "lockstep.dev/simulated:any"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fw := jobs.MakeFramework("held").Role("a", 3, jobs.RunForever()).Role("b", 3, jobs.RunForever()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFramework(t, namespace, fw.Name, "run but for the task of that name", func(fw *frameworkv1.Framework) bool {
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == 5
	})
	waitBlocked(t, namespace, fw.Name, frameworkv1.ReasonNameTaken, foreign.Name)
	if live, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), foreign.Name, metav1.GetOptions{}); err != nil || live.UID != foreign.UID || live.DeletionTimestamp != nil {
		t.Errorf("the foreign Pod is now %v (%v)", live, err)
	}
	cluster.DeletePod(t, namespace, foreign.Name)
	waitUnblocked(t, namespace, fw.Name, 6)
}
