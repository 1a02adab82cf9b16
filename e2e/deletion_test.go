//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// deleteFramework deletes a Framework and does not wait until it is gone.
func deleteFramework(t *testing.T, namespace, name string, propagation metav1.DeletionPropagation) {
	t.Helper()
	if err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Delete(t.Context(), name,
		metav1.DeleteOptions{PropagationPolicy: &propagation}); err != nil {
		t.Fatal(err)
	}
}

// wantNothingLeft checks that all that a Framework has made is gone.
func wantNothingLeft(t *testing.T, namespace, name string) {
	t.Helper()
	testbed.Eventually(t, "nothing to be left of "+name, func(ctx context.Context) (bool, string, error) {
		out, err := cluster.Kubectl(ctx, "get", "configmaps,podgroups,pods", "-n", namespace, "-l", frameworkv1.KeyFrameworkName+"="+name, "-o", "name")
		return strings.TrimSpace(out) == "", out, err
	})
}

// TestForegroundDeletion keeps the Framework until its Pods are gone, so that
// whoever finds it gone knows that nothing of it runs.
func TestForegroundDeletion(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	recording := cluster.Record(t, namespace)
	fw := jobs.MakeFramework("deleted").Gang().Retry(true, -2).
		Role("worker", 4, jobs.RunForever().Retry(true, -2).Held()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkAttemptRunning)

	deleteFramework(t, namespace, fw.Name, metav1.DeletePropagationForeground)
	testbed.Consistently(t, "the Framework stays while its Pods do", held, func(ctx context.Context) (bool, string, error) {
		got, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, fw.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, "it is gone", nil
		}
		return err == nil && got.DeletionTimestamp != nil, fmt.Sprint(got.DeletionTimestamp), err
	})
	testbed.Eventually(t, "the Framework to be gone", func(ctx context.Context) (bool, string, error) {
		cluster.Release(t, namespace)
		_, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, fw.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there", nil
	})
	recording.Check(t)
	wantNothingLeft(t, namespace, fw.Name)
}

// TestBackgroundDeletion lets the Framework go at once, and its Pods run on for a
// while. Even so one that is made anew under its name waits for them.
func TestBackgroundDeletion(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	fw := jobs.MakeFramework("deleted").Role("worker", 2, jobs.RunForever().Held()).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkAttemptRunning)
	before := podUIDs(t, namespace, fw.Name)

	deleteFramework(t, namespace, fw.Name, metav1.DeletePropagationBackground)
	cluster.CreateFramework(t, namespace, fw)
	testbed.Consistently(t, "the old Pods stay", held, func(context.Context) (bool, string, error) {
		after := podUIDs(t, namespace, fw.Name)
		for pod, uid := range before {
			if after[pod] != uid {
				return false, "Pod " + pod + " was replaced", nil
			}
		}
		return true, "", nil
	})
	testbed.Eventually(t, "the new Framework to run", func(ctx context.Context) (bool, string, error) {
		cluster.Release(t, namespace)
		got, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, fw.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		return got.Status != nil && got.Status.Tasks != nil && got.Status.Tasks.Running == 2, localenv.DescribeFramework(got), nil
	})
}

// TestForceDeletion stops a Framework on a node that does not answer. Of its two
// roles one gives its Pods three seconds to end, and the other all time.
func TestForceDeletion(t *testing.T) {
	t.Parallel()
	const timeout = 3
	namespace := cluster.Namespace(t)
	node := lostNode(t, namespace)
	fw := jobs.MakeFramework("lost").
		Role("hasty", 1, jobs.RunForever().Node(node).GracefulDeletionTimeout(timeout)).
		Role("patient", 1, jobs.RunForever().Node(node)).Obj()
	cluster.CreateFramework(t, namespace, fw)
	cluster.WaitFramework(t, namespace, fw.Name, "have both Pods", func(fw *frameworkv1.Framework) bool {
		hasty, patient := task(fw, "hasty", 0), task(fw, "patient", 0)
		return hasty != nil && hasty.State == frameworkv1.TaskAttemptPreparing && patient.State == frameworkv1.TaskAttemptPreparing
	})

	stopped := time.Now()
	setExecutionType(t, namespace, fw.Name, frameworkv1.ExecutionStop)
	testbed.Eventually(t, "the hasty Pod to be gone", func(ctx context.Context) (bool, string, error) {
		_, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, "lost-hasty-0", metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there", nil
	})
	// The API server stores the time of the deletion in whole seconds.
	if took := time.Since(stopped); took < (timeout-1)*time.Second {
		t.Errorf("the Pod was deleted by force after %v, want %ds", took, timeout)
	}
	testbed.Consistently(t, "the patient Pod keeps the Framework", held, func(ctx context.Context) (bool, string, error) {
		got, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, fw.Name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		state := got.Status.State
		return state != frameworkv1.FrameworkAttemptCompleted && state != frameworkv1.FrameworkCompleted, localenv.DescribeFramework(got), nil
	})
	// What an administrator does who knows that the node is down for good.
	if err := cluster.Kube.CoreV1().Pods(namespace).Delete(t.Context(), "lost-patient-0", metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}); err != nil {
		t.Fatal(err)
	}
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	if got, want := endOf(done), (end{Code: frameworkv1.CodeStopFrameworkRequested, TasksTotal: 2}); got != want {
		t.Errorf("it ended as %+v, want %+v", got, want)
	}
}

// lostNode makes a node that nobody plays. Its name is the namespace's.
func lostNode(t *testing.T, namespace string) string {
	t.Helper()
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourcePods: resource.MustParse("10"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Spec:       corev1.NodeSpec{Unschedulable: true},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
	if _, err := cluster.Kube.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cluster.Kube.CoreV1().Nodes().Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return namespace
}
