// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/testing/podways"
)

// TestEachWayInWhichAPodEndsIsItsEvent holds the table of all ways against a Job that has a
// policy for each event.
func TestEachWayInWhichAPodEndsIsItsEvent(t *testing.T) {
	entered := map[podways.Volcano]batchv1alpha1.JobPhase{podways.PodEvicted: batchv1alpha1.JobRestarting, podways.PodFailed: batchv1alpha1.JobAborting}
	for _, way := range podways.Ways() {
		t.Run(way.Name, func(t *testing.T) {
			s, _ := afterTheEnd(t, way, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartJob), on(busv1alpha1.EventPodFailed, busv1alpha1.ActionAbortJob))
			for event, phase := range entered {
				if got := slices.Contains(s.phases, phase); got != (event == way.Volcano) {
					t.Errorf("the event %s was raised: %v, want %q alone; the Job was %v", event, got, way.Volcano, s.phases)
				}
			}
		})
	}
}

// TestExitCodesOfWhatTheClusterEndedFitNoPolicy: the program did not choose them. Without another
// policy the Pod is made again, and the Job is not restarted.
func TestExitCodesOfWhatTheClusterEndedFitNoPolicy(t *testing.T) {
	for _, way := range podways.Ways() {
		if way.Volcano != podways.PodEvicted {
			continue
		}
		t.Run(way.Name, func(t *testing.T) {
			s, before := afterTheEnd(t, way,
				onCode(1, busv1alpha1.ActionAbortJob), onCode(137, busv1alpha1.ActionAbortJob), onCode(143, busv1alpha1.ActionAbortJob))
			pod := s.pod("j-a-0")
			if pod == nil || pod.UID == before || pod.Status.Phase != corev1.PodRunning || s.phase() != batchv1alpha1.JobRunning || s.written.RetryCount != 0 {
				t.Errorf("the Job was %v and restarted %d times; its Pod is %v", s.phases, s.written.RetryCount, pod)
			}
		})
	}
}

// TestAPolicyForFailuresAloneIsForWhatTheClusterEnded, as under Volcano, if nobody deletes the Pod.
func TestAPolicyForFailuresAloneIsForWhatTheClusterEnded(t *testing.T) {
	for _, way := range podways.Ways() {
		if way.Name != "its node shuts down, and it exits with 1" && way.Name != "is evicted by its kubelet, and exits with 0" {
			continue
		}
		t.Run(way.Name, func(t *testing.T) {
			if s, _ := afterTheEnd(t, way, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionAbortJob)); s.phase() != batchv1alpha1.JobAborted {
				t.Errorf("the Job was %v", s.phases)
			}
		})
	}
}

// afterTheEnd is a Job of two Pods that run until a minute after one of them has ended in a way,
// and the UID of that Pod.
func afterTheEnd(t *testing.T, way podways.Way, policies ...batchv1alpha1.LifecyclePolicy) (*simulation, types.UID) {
	t.Helper()
	s := given(t, job(ofTask("a", 2, policies...)), nil).until(batchv1alpha1.JobRunning)
	pod := s.pod("j-a-0")
	uid := pod.UID
	if way.Deletes() {
		s.deletePod(pod.Name, 30)
	}
	way.Happen(pod, s.now)
	s.store(KindPod, pod)
	return s.after(60), uid
}
