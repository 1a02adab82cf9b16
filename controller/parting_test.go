// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/internal/testing/apiserver"
)

// loseNode ends a Pod as podgc does when its node is gone. It goes before the controller has looked at how it ended.
func (c *cluster) loseNode(pod string) {
	apiserver.Change(c.server, "ns", pod, func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
		})
	})
	apiserver.Remove[corev1.Pod](c.server, "ns", pod)
}

// TestALostNodeIsToldByThePodThatWentWithIt, also where no decision has seen the Pod between its end and its deletion.
func TestALostNodeIsToldByThePodThatWentWithIt(t *testing.T) {
	t.Run("Framework", func(t *testing.T) {
		inCluster(t, func(t *testing.T, c *cluster) {
			apiserver.Add(c.server, newFramework(2))
			c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
			c.loseNode("fw-w-0")
			c.pass(time.Minute)
			status := apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw").Status
			if got := status.AttemptStatus.TaskAttempts; got.NodeLosses != 1 {
				t.Errorf("the attempts of tasks are counted as %+v, want one node loss", got)
			}
		})
	})
	t.Run("Volcano Job", func(t *testing.T) {
		inClusterWith(t, runJobs, func(t *testing.T, c *cluster) {
			job := newJob(newTask("a", 2))
			job.Spec.Policies = []batchv1alpha1.LifecyclePolicy{{Event: busv1alpha1.EventPodEvicted, Action: busv1alpha1.ActionAbortJob}}
			apiserver.Add(c.server, job)
			c.awaitPhase(t, "j", batchv1alpha1.JobRunning)
			c.loseNode("j-a-0")
			c.awaitPhase(t, "j", batchv1alpha1.JobAborted)
			c.wantEvent(t, "j", corev1.EventTypeNormal, "ExecuteAction", "j-a-0 was lost with its node: PodGC: node no longer exists")
		})
	})
	t.Run("training job", func(t *testing.T) {
		inClusterWith(t, runTraining, func(t *testing.T, c *cluster) {
			apiserver.Add(c.server, newPyTorchJob(map[string]int32{"Master": 1, "Worker": 1}))
			c.awaitTraining(t, "j", kubeflowv1.JobRunning)
			c.loseNode("j-worker-0")
			c.pass(time.Minute)
			c.wantEvent(t, "j", corev1.EventTypeNormal, "PyTorchJobRestarting", "j-worker-0 was lost with its node: PodGC: node no longer exists")
			c.awaitTraining(t, "j", kubeflowv1.JobRunning)
		})
	})
}

// TestALostNodeIsToldThoughAUserChangesTheFrameworkMeanwhile: its status is decided on again then.
func TestALostNodeIsToldThoughAUserChangesTheFrameworkMeanwhile(t *testing.T) {
	quiet(t)
	inCluster(t, func(t *testing.T, c *cluster) {
		apiserver.Add(c.server, newFramework(2))
		c.awaitState(t, "fw", frameworkv1.FrameworkAttemptRunning)
		c.pass(time.Minute)
		conflicts := 0
		c.server.SetHook(func(r *apiserver.Request) apiserver.Fault {
			if conflicts == 0 && r.Verb == apiserver.Update && r.Subresource == "status" {
				conflicts++
				apiserver.Change(c.server, "ns", "fw", func(f *frameworkv1.Framework) { f.Labels = map[string]string{"a": "b"} })
			}
			return apiserver.Fault{}
		})
		c.loseNode("fw-w-0")
		c.pass(time.Minute)
		status := apiserver.Find[frameworkv1.Framework](c.server, "ns", "fw").Status
		if got := status.AttemptStatus.TaskAttempts; got.NodeLosses != 1 || conflicts != 1 {
			t.Errorf("after %d conflicts, the attempts of tasks are counted as %+v, want one node loss", conflicts, got)
		}
	})
}
