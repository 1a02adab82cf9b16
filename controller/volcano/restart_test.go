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

// TestARestartHappensOnceWhereverTheControllerDies lets a controller die after each of its
// writes, for each way in which a Pod asks for a restart and each part that is restarted.
func TestARestartHappensOnceWhereverTheControllerDies(t *testing.T) {
	causes := map[string]struct {
		event busv1alpha1.Event
		cause func(*simulation)
	}{
		"a Pod that fails":        {busv1alpha1.EventPodFailed, func(s *simulation) { s.setPhase("j-a-1", corev1.PodFailed, 1) }},
		"a Pod that is deleted":   {busv1alpha1.EventPodEvicted, func(s *simulation) { s.deletePod("j-a-1", 30) }},
		"a Pod that vanishes":     {busv1alpha1.EventPodEvicted, func(s *simulation) { s.remove(KindPod, "j-a-1") }},
		"a task that is complete": {busv1alpha1.EventTaskCompleted, func(s *simulation) { succeed(s, "j-a-0", "j-a-1", "j-a-2", "j-a-3") }},
	}
	// Of the Pods j-a-0 to j-a-3 and j-b-0, those that are made anew. The last of a task
	// that completes at once is the first.
	actions := map[busv1alpha1.Action]string{
		busv1alpha1.ActionRestartJob:       "+++++",
		busv1alpha1.ActionRestartTask:      "++++-",
		busv1alpha1.ActionRestartPod:       "-+---",
		busv1alpha1.ActionRestartPartition: "++---",
	}
	for name, tc := range causes {
		for action, want := range actions {
			if tc.event == busv1alpha1.EventTaskCompleted && action == busv1alpha1.ActionRestartPod {
				want = "+----"
			}
			for writes := range 14 {
				t.Run(fmt.Sprintf("%s, %s, after %d writes", name, action, writes), func(t *testing.T) {
					s := given(t, withSpec(job(ofTask("a", 4, on(tc.event, action)), ofTask("b", 1)), func(s *batchv1alpha1.JobSpec) {
						s.Tasks[0].PartitionPolicy = &batchv1alpha1.PartitionPolicySpec{TotalPartitions: 2, PartitionSize: 2}
					}), nil)
					s.until(rr)
					names := s.ownPods()
					before := map[string]string{}
					for _, name := range names {
						before[name] = s.uidOf(name)
					}
					tc.cause(s)
					s.crashAfter = writes
					s.after(6)
					got := ""
					for _, name := range names {
						got += map[bool]string{true: "-", false: "+"}[s.uidOf(name) == before[name]]
					}
					if got != want || s.written.RetryCount != 1 {
						t.Errorf("made anew: %s, want %s; retryCount %d, want 1; %v", got, want, s.written.RetryCount, s.phases)
					}
				})
			}
		}
	}
}

func succeed(s *simulation, names ...string) {
	for _, name := range names {
		s.setPhase(name, corev1.PodSucceeded, 0)
	}
}
