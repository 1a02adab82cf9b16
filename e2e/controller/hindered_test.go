//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

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
	cluster.WaitBlocked(t, namespace, fw.Name, frameworkv1.ReasonNameTaken, foreign.Name)
	if live, err := cluster.Kube.CoreV1().Pods(namespace).Get(t.Context(), foreign.Name, metav1.GetOptions{}); err != nil || live.UID != foreign.UID || live.DeletionTimestamp != nil {
		t.Errorf("the foreign Pod is now %v (%v)", live, err)
	}
	cluster.DeletePod(t, namespace, foreign.Name)
	cluster.WaitUnblocked(t, namespace, fw.Name, 6)
}
