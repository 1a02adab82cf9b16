// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

func TestARestartThatJoinsAnotherIsNotLostWhereverTheControllerDies(t *testing.T) {
	causes := map[string]struct {
		event busv1alpha1.Event
		cause func(*simulation)
	}{
		"two Pods vanish": {busv1alpha1.EventPodEvicted, func(s *simulation) {
			s.remove(KindPod, "j-a-0")
			s.remove(KindPod, "j-b-0")
		}},
		"two Pods are deleted": {busv1alpha1.EventPodEvicted, func(s *simulation) {
			s.deletePod("j-a-0", 30)
			s.deletePod("j-b-0", 30)
		}},
		"two Pods fail": {busv1alpha1.EventPodFailed, func(s *simulation) {
			s.setPhase("j-a-0", corev1.PodFailed, 1)
			s.setPhase("j-b-0", corev1.PodFailed, 1)
		}},
		"two tasks are complete": {busv1alpha1.EventTaskCompleted, func(s *simulation) {
			succeed(s, "j-a-0", "j-b-0", "j-b-1", "j-b-2")
		}},
	}
	for name, tc := range causes {
		for turn := range 28 {
			writes, late := turn/2, turn%2 == 1
			t.Run(fmt.Sprintf("%s, after %d writes, the status is late: %v", name, writes, late), func(t *testing.T) {
				restart := on(tc.event, busv1alpha1.ActionRestartTask)
				s := given(t, withSpec(job(ofTask("a", 1, restart), ofTask("b", 3, restart), ofTask("c", 1)), func(s *batchv1alpha1.JobSpec) {
					s.MinAvailable, s.MaxRetry = 1, 9
				}), nil)
				s.until(rr).after(2)
				before := map[string]string{}
				for _, name := range s.ownPods() {
					before[name] = s.uidOf(name)
				}
				tc.cause(s)
				s.crashAfter = writes
				if late { // As in the shell, where a status that gates no action at all waits for others.
					s.writeFrom = plan.PersistNow
					s.run()
					s.writeFrom = plan.PersistLater
				}
				s.after(6)
				for name, uid := range before {
					if anew := s.uidOf(name) != uid; anew != (name != "j-c-0") {
						t.Errorf("Pod %s is made anew: %v; %v", name, anew, s.phases)
					}
				}
				if s.written.RetryCount != 1 {
					t.Errorf("retryCount is %d, want 1: the second restart joins the first; %v", s.written.RetryCount, s.phases)
				}
				if joined := readRecord(s.written, "b", 3).joined.Count(); joined > 0 {
					t.Errorf("%d indexes of b are still to be restarted", joined)
				}
			})
		}
	}
}

func TestAPodOfAPartThatJoinsIsFoundThoughItIsOutOfSight(t *testing.T) {
	restart := on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartTask) // No policy asks for a look at a Pod that is gone.
	s := given(t, withSpec(job(ofTask("a", 1, restart), ofTask("b", 2, restart)), func(s *batchv1alpha1.JobSpec) {
		s.MinAvailable, s.MaxRetry = 1, 9
	}), nil)
	s.until(rr)
	before := s.uidOf("j-b-1")
	clear(s.controller.own)
	delete(s.cache.objects, ObjectKey{KindPod, "j-b-1"})
	s.setPhase("j-a-0", corev1.PodFailed, 1)
	s.setPhase("j-b-0", corev1.PodFailed, 1)
	s.after(6)
	if after := s.uidOf("j-b-1"); after == "" || after == before {
		t.Errorf("Pod j-b-1 was %s and is %s", before, after)
	}
}

func TestWhatEndsDuringARestartOfAnotherPartHasEnded(t *testing.T) {
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartTask)), ofTask("b", 1)), nil)
		s.until(rr)
		s.deletePod("j-a-0", 30)
		s.run()
		s.setPhase("j-b-0", phase, 0)
		s.run()
		if s.phase() != rs {
			t.Fatalf("the Job is %s", s.phase())
		}
		s.remove(KindPod, "j-b-0")
		s.run()
		s.after(5).hasPods("j-a-0", "j-a-1")
		if got := s.written.Succeeded + s.written.Failed; got != 1 {
			t.Errorf("%s: %d ends are counted, want 1", phase, got)
		}
	}
}

func TestAnEventThatARestartHasNoUseForIsNotForgotten(t *testing.T) {
	restart := on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartTask)
	tests := map[string]struct {
		policy  batchv1alpha1.LifecyclePolicy
		happens func(*simulation)
	}{
		"a Pod that fails and is deleted": {on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartJob), func(s *simulation) {
			s.setPhase("j-b-0", corev1.PodFailed, 1)
			s.run()
			s.remove(KindPod, "j-b-0")
		}},
		"a Pod that vanishes": {on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartJob), func(s *simulation) {
			s.remove(KindPod, "j-b-0")
		}},
		"a Pod that vanishes, with a delay": {in("3s", on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartJob)), func(s *simulation) {
			s.remove(KindPod, "j-b-0")
			s.cordoned = true
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2, restart), ofTask("b", 1, tc.policy)), func(s *batchv1alpha1.JobSpec) {
				s.MaxRetry = 9
			}), nil)
			s.until(rr)
			s.deletePod("j-a-0", 30)
			s.run()
			if s.phase() != rs {
				t.Fatalf("the Job is %s", s.phase())
			}
			tc.happens(s)
			s.run()
			s.after(8).has(tally{r: s.written.Running, p: s.written.Pending, rc: 2})
		})
	}
}

// TestWhatWasToBeRestartedHasEndedWhenTheJobStops: the end of a Pod that is gone is not forgotten
// for a restart that does not come.
func TestWhatWasToBeRestartedHasEndedWhenTheJobStops(t *testing.T) {
	s := given(t, job(
		ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartTask)),
		ofTask("b", 1, in("5s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartTask))),
		ofTask("c", 1, in("5s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionTerminateJob)))), nil)
	s.until(rr)
	s.setPhase("j-b-0", corev1.PodFailed, 1)
	s.setPhase("j-c-0", corev1.PodFailed, 1)
	s.after(2)
	s.remove(KindPod, "j-b-0")
	s.deletePod("j-a-0", 30)
	s.run()
	s.now = s.now.Add(10 * time.Second)
	s.run()
	s.until(td).has(tally{f: 2, rc: 1})
}

// TestAnEvictionThatRestartsNothingIsNotLookedInto: RestartPartition of a task without partitions,
// while another part is restarted.
func TestAnEvictionThatRestartsNothingIsNotLookedInto(t *testing.T) {
	s := given(t, job(
		ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartTask)),
		ofTask("b", 1, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartPartition))), nil)
	s.until(rr)
	s.deletePod("j-a-0", 30)
	s.run()
	s.remove(KindPod, "j-b-0")
	looks := 0
	s.onAction = func(a plan.Action) {
		if a.Verb == plan.ConfirmNo {
			looks++
		}
	}
	for range 3 { // Each event of the Job would be a look.
		s.run()
	}
	if s.phase() != rs || !s.told(ReasonNoTarget) || looks > 0 {
		t.Errorf("the Job is %s, events %v, %d looks", s.phase(), s.events, looks)
	}
	s.until(rr).has(tally{r: 3, rc: 1})
}
