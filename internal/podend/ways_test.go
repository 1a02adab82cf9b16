// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podend_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/podend"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

func TestEachWayInWhichAPodEndsHasItsCause(t *testing.T) {
	for _, way := range podways.Ways() {
		t.Run(way.Name, func(t *testing.T) {
			pod := running()
			if got := podend.Of(pod); got != (podend.Verdict{}) {
				t.Fatalf("a running Pod has the verdict %+v", got)
			}
			way.End(podways.Ending{Pod: pod, At: metav1.Unix(1000, 0)})
			got := podend.Of(pod)
			if got.Cause != way.Cause || got.Certain == way.Uncertain {
				t.Errorf("the Pod has the verdict %+v, want %s, certain %v", got, way.Cause, !way.Uncertain)
			}
			if got.ByCluster() != (way.Volcano == podways.PodEvicted && way.Cause != podend.CauseDeleted) {
				t.Errorf("by the cluster: %v", got.ByCluster())
			}
			if got.String() == "" {
				t.Error("nothing is said about the end")
			}
		})
	}
}

func running() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a"},
		Spec:       corev1.PodSpec{NodeName: "node", Containers: []corev1.Container{{Name: "main"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
			{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		}},
	}
}

func TestAContainerThatIsRestartedInPlaceIsNoEnd(t *testing.T) {
	for name, phase := range map[string]corev1.PodPhase{"a container": corev1.PodRunning, "an init container": corev1.PodPending} {
		t.Run(name, func(t *testing.T) {
			pod := running()
			pod.Status.Phase = phase
			pod.Status.ContainerStatuses[0] = corev1.ContainerStatus{
				Name: "main", RestartCount: 6,
				State:                corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}},
			}
			if got := podend.Of(pod); got.Cause != podend.CauseNone || got.String() != "" {
				t.Errorf("the Pod has the verdict %+v", got)
			}
		})
	}
}

func TestAnAnnouncedDisruptionIsNoEnd(t *testing.T) {
	pod := running()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}}
	if got := podend.Of(pod); got.Cause != podend.CauseNone {
		t.Errorf("a running Pod has ended by %s", got.Cause)
	}
	pod.Status.Phase = corev1.PodSucceeded
	if got := podend.Of(pod); !got.Succeeded() {
		t.Errorf("a Pod that succeeds before it is deleted has the verdict %+v", got)
	}
}

func TestTheContainerThatFailedIsNamed(t *testing.T) {
	pod := running()
	pod.Status.Phase = corev1.PodFailed
	ended := func(name string, code int32, second int64) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Unix(second, 0)},
		}}
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{ended("main", 1, 10), ended("proxy", 137, 20)}
	if got, want := podend.Of(pod).String(), "failed: container proxy exited with code 137"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := podend.OfMain(pod, "main").String(), "failed: container main exited with code 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
