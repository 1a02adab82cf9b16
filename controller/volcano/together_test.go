// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// TestTwoEventsThatAreSeenTogetherBothRestartTheirTasks has Pods of two tasks end at the same
// moment, and be deleted, without a trace, as soon as the first of the two is acted on, or is
// about to be. The controller dies then, after a number of its writes.
func TestTwoEventsThatAreSeenTogetherBothRestartTheirTasks(t *testing.T) {
	ends := map[busv1alpha1.Event]corev1.PodPhase{
		busv1alpha1.EventPodFailed:     corev1.PodFailed,
		busv1alpha1.EventTaskCompleted: corev1.PodSucceeded,
	}
	for event, phase := range ends {
		for writes := range 10 {
			t.Run(fmt.Sprintf("%s, after %d writes", event, writes), func(t *testing.T) {
				restart := on(event, busv1alpha1.ActionRestartTask)
				s := given(t, withSpec(job(ofTask("a", 1, restart), ofTask("b", 1, restart), ofTask("c", 1)), func(s *batchv1alpha1.JobSpec) { s.MaxRetry = 9 }), nil)
				s.until(rr).after(1)
				before := map[string]string{"j-a-0": s.uidOf("j-a-0"), "j-b-0": s.uidOf("j-b-0")}
				s.onWrite = func(was, is *batchv1alpha1.JobStatus) {
					if was.State.Phase == rr && is.State.Phase == rs {
						s.crashAfter = writes
						for name := range before {
							s.remove(KindPod, name)
						}
					}
				}
				for name := range before {
					s.setPhase(name, phase, int32(len(phase)%2))
				}
				s.after(10)
				for name, uid := range before {
					if now := s.uidOf(name); now == "" || now == uid {
						t.Errorf("%s is not made anew: the Job is %s after %v, its record %v", name, s.phase(), s.phases, s.written.ControlledResources)
					}
				}
				s.has(tally{r: 3, rc: s.written.RetryCount})
			})
		}
	}
}
