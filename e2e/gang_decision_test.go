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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/e2e/testbed"
	"github.com/lockstep-k8s/lockstep/internal/localenv"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// waitRunning waits until a number of tasks of a Framework run, in its first attempt.
func waitRunning(t *testing.T, namespace, name string, tasks int32) *frameworkv1.Framework {
	t.Helper()
	return cluster.WaitFramework(t, namespace, name, fmt.Sprintf("run with %d tasks", tasks), func(fw *frameworkv1.Framework) bool {
		if fw.Status != nil && fw.Status.AttemptStatus.CompletionStatus != nil {
			t.Fatalf("its attempt has ended: %s", localenv.DescribeFramework(fw))
		}
		return fw.Status != nil && fw.Status.Tasks != nil && fw.Status.Tasks.Running == tasks
	})
}

// wantSameAttempt wants a Framework to go on with its first attempt for a while.
func wantSameAttempt(t *testing.T, namespace, name string, d time.Duration) {
	t.Helper()
	testbed.Consistently(t, "the attempt of "+name, d, func(ctx context.Context) (bool, string, error) {
		fw, err := cluster.Lockstep.FrameworkcontrollerV1().Frameworks(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		attempt := fw.Status.AttemptStatus
		return attempt.ID == 0 && attempt.CompletionStatus == nil, localenv.DescribeFramework(fw), nil
	})
}

// TestARunningAttemptDoesNotBecomeAGang sets spec.gang, with a short time-out, while an
// attempt runs. The attempt goes on as it is, and so do its retried tasks.
func TestARunningAttemptDoesNotBecomeAGang(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("plain").Retry(false, 1).Role("worker", 3, jobs.RunForever().Retry(false, -1)).Obj()
	namespace := submit(t, fw)
	waitRunning(t, namespace, fw.Name, 3)
	patchSpec(t, namespace, fw.Name, `[{"op": "add", "path": "/spec/gang", "value": {"minMember": 3, "scheduleTimeoutSeconds": 2}}]`)
	cluster.DeletePod(t, namespace, fw.Name+"-worker-1")
	wantSameAttempt(t, namespace, fw.Name, 5*time.Second)
	waitRunning(t, namespace, fw.Name, 3)
	if group, err := cluster.Lockstep.SchedulingV1alpha1().PodGroups(namespace).Get(t.Context(), frameworkv1.PodGroupName(fw.Name), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a PodGroup: %v (%v)", group, err)
	}
}

// TestARunningGangStaysOne takes spec.gang away while an attempt runs. A retried task
// joins its gang; the next attempt is none.
func TestARunningGangStaysOne(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("tight").Gang().Retry(false, 1).Role("worker", 3, jobs.RunForever().Retry(false, 5)).Obj()
	namespace := submit(t, fw)
	waitRunning(t, namespace, fw.Name, 3)
	before := podUIDs(t, namespace, fw.Name)
	patchSpec(t, namespace, fw.Name, `[{"op": "remove", "path": "/spec/gang"}]`)
	cluster.DeletePod(t, namespace, fw.Name+"-worker-1")
	testbed.Eventually(t, "the task to be retried and placed", func(ctx context.Context) (bool, string, error) {
		pod, err := cluster.Kube.CoreV1().Pods(namespace).Get(ctx, fw.Name+"-worker-1", metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		inGroup := pod.Labels[schedulingv1alpha1.LabelPodGroup] == frameworkv1.PodGroupName(fw.Name)
		return pod.UID != before[pod.Name] && inGroup && pod.Spec.NodeName != "", fmt.Sprintf("labels %v, node %q", pod.Labels, pod.Spec.NodeName), nil
	})
	waitRunning(t, namespace, fw.Name, 3)

	if out, err := cluster.Kubectl(t.Context(), "delete", "configmap", frameworkv1.AttemptName(fw.Name), "-n", namespace); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	next := cluster.WaitFramework(t, namespace, fw.Name, "run its next attempt", func(fw *frameworkv1.Framework) bool {
		return fw.Status.AttemptStatus.ID == 1 && fw.Status.Tasks.Running == 3
	})
	if gang := next.Status.AttemptStatus.Gang; gang == nil || gang.Enabled {
		t.Errorf("the next attempt is decided to be %+v, want no gang", gang)
	}
	if meta.FindStatusCondition(next.Status.Conditions, frameworkv1.ConditionGangScheduled) != nil {
		t.Errorf("the conditions still speak of a gang: %+v", next.Status.Conditions)
	}
}

// TestNamesAsLongAsTheyMayBe runs Frameworks whose names are as long as names may be,
// or as long as those of PodGroups may not be, as gangs or not.
func TestNamesAsLongAsTheyMayBe(t *testing.T) {
	t.Parallel()
	namespace := cluster.Namespace(t)
	for i, length := range []int{55, 56, 60, 63} {
		name := strings.Repeat("n", length)
		plain, gang, implied := name[1:]+"p", name[1:]+"g", name[1:]+"i"
		role := strings.Repeat("r", []int{1, 20, 40, 63}[i])
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(plain).Role(role, 2, jobs.RunFor(time.Second, 0)).Obj())
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(gang).Gang().Role(role, 2, jobs.RunFor(time.Second, 0)).Obj())
		cluster.CreateFramework(t, namespace, jobs.MakeFramework(implied).Role(role, 2, jobs.RunFor(time.Second, 0).Scheduler("lockstep-scheduler")).Obj())
		for _, name := range []string{plain, gang, implied} {
			done := cluster.WaitFrameworkState(t, namespace, name, frameworkv1.FrameworkCompleted)
			if got, want := endOf(done), (end{TasksSucceeded: 2, TasksTotal: 2}); got != want {
				t.Errorf("%s ended as %+v, want %+v", name, got, want)
			}
		}
	}
}

// TestAScaleUpWithoutRoomEndsNoGang scales a running gang to more tasks than there is
// room for. None of them was lost, so recoveryTimeoutSeconds does not count.
func TestAScaleUpWithoutRoomEndsNoGang(t *testing.T) {
	const recovery = 5
	fw := jobs.MakeFramework("grows").Gang().Role("a", 4, wholeNodes()).Obj()
	fw.Spec.Gang.RecoveryTimeoutSeconds = ptr.To[int32](recovery)
	namespace := submit(t, fw)
	waitRunning(t, namespace, fw.Name, 4)
	walk{t, namespace, fw.Name}.scale(nodes + 20)
	cluster.WaitFramework(t, namespace, fw.Name, "have the new tasks", func(fw *frameworkv1.Framework) bool {
		return fw.Status.Tasks.Total == nodes+20
	})
	wantSameAttempt(t, namespace, fw.Name, 3*recovery*time.Second)
	walk{t, namespace, fw.Name}.scale(4)
	waitRunning(t, namespace, fw.Name, 4)
}
