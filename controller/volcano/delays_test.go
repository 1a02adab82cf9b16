// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

// TestAnActionWithADelayOutlivesPods whose end it follows from, and the controller that saw
// them: all Pods that have ended are deleted before it is due.
func TestAnActionWithADelayOutlivesPods(t *testing.T) {
	fail := func(code int32, names ...string) func(*simulation) {
		return func(s *simulation) {
			for _, name := range names {
				s.setPhase(name, corev1.PodFailed, code)
			}
		}
	}
	tests := map[string]struct {
		policies []batchv1alpha1.LifecyclePolicy
		happens  func(*simulation)
		want     []batchv1alpha1.JobPhase
		anew     string
	}{
		"a failure completes the Job": {
			policies: []batchv1alpha1.LifecyclePolicy{in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob))},
			happens:  fail(1, "j-a-1"), want: []batchv1alpha1.JobPhase{pp, rr, cc, cd},
		},
		"an exit code aborts it, before another policy would": {
			policies: []batchv1alpha1.LifecyclePolicy{in("20s", onCode(3, busv1alpha1.ActionAbortJob)), in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob))},
			happens:  fail(3, "j-a-1"), want: []batchv1alpha1.JobPhase{pp, rr, ab, abd},
		},
		"another code completes it": {
			policies: []batchv1alpha1.LifecyclePolicy{in("20s", onCode(3, busv1alpha1.ActionAbortJob)), in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob))},
			happens:  fail(2, "j-a-1"), want: []batchv1alpha1.JobPhase{pp, rr, cc, cd},
		},
		"the success of a task completes it": {
			policies: []batchv1alpha1.LifecyclePolicy{in("20s", on(busv1alpha1.EventTaskCompleted, busv1alpha1.ActionCompleteJob))},
			happens:  func(s *simulation) { succeed(s, "j-a-0", "j-a-1") }, want: []batchv1alpha1.JobPhase{pp, rr, cc, cd},
		},
		"the success of a task restarts it": {
			policies: []batchv1alpha1.LifecyclePolicy{in("20s", on(busv1alpha1.EventTaskCompleted, busv1alpha1.ActionRestartTask))},
			happens:  func(s *simulation) { succeed(s, "j-a-0", "j-a-1") }, want: []batchv1alpha1.JobPhase{pp, rr, rs, pp, rr},
			anew: "++-",
		},
		"each Pod that failed is restarted": {
			policies: []batchv1alpha1.LifecyclePolicy{in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod))},
			happens:  fail(1, "j-a-0", "j-a-1"), want: []batchv1alpha1.JobPhase{pp, rr, rs, pp, rr},
			anew: "++-",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2, tc.policies...), ofTask("b", 1)), func(s *batchv1alpha1.JobSpec) { s.MinAvailable = 1 }), nil)
			s.until(rr).after(1)
			names, before := s.ownPods(), map[string]string{}
			for _, name := range names {
				before[name] = s.uidOf(name)
			}
			tc.happens(s)
			s.after(5)
			for _, name := range names {
				if phase := s.pod(name).Status.Phase; phase != corev1.PodRunning {
					s.remove(KindPod, name)
				}
			}
			s.after(5)
			s.crash()
			s.after(8).sees(pp, rr)
			s.after(8).sees(tc.want...)
			got := ""
			for _, name := range names {
				got += map[bool]string{true: "-", false: "+"}[s.uidOf(name) == before[name]]
			}
			if tc.anew != "" && got != tc.anew {
				t.Errorf("made anew: %s, want %s", got, tc.anew)
			}
		})
	}
}

// TestANodeWhoseClockIsAheadMakesNoDelayLonger, nor does it begin anew with each controller.
func TestANodeWhoseClockIsAheadMakesNoDelayLonger(t *testing.T) {
	for name, tc := range map[string]struct {
		policy batchv1alpha1.LifecyclePolicy
		phase  corev1.PodPhase
	}{
		"of a failure": {in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionAbortJob)), corev1.PodFailed},
		"of an end":    {in("20s", on(busv1alpha1.EventTaskCompleted, busv1alpha1.ActionAbortJob)), corev1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, job(ofTask("a", 1, tc.policy), ofTask("b", 1)), nil)
			s.until(rr).after(1)
			seen := s.now
			s.now = seen.Add(time.Hour) // By the clock of the node.
			s.setPhase("j-a-0", tc.phase, 0)
			s.now = seen
			s.after(15)
			s.crash()
			s.after(10).sees(pp, rr, ab, abd)
		})
	}
}

func TestWhatFollowedFromAnEndFollowsOnce(t *testing.T) {
	policies := []batchv1alpha1.LifecyclePolicy{in("5s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod))}
	s := given(t, withSpec(job(ofTask("a", 2, policies...)), func(s *batchv1alpha1.JobSpec) { s.MaxRetry = 9 }), nil)
	s.until(rr)
	s.setPhase("j-a-0", corev1.PodFailed, 1)
	s.after(1)
	s.remove(KindPod, "j-a-0")
	s.after(30).has(tally{r: 2, rc: 1})
}

func TestAResumedJobKnowsNothingOfDelays(t *testing.T) {
	policies := []batchv1alpha1.LifecyclePolicy{in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob))}
	s := given(t, withSpec(job(ofTask("a", 2, policies...)), func(s *batchv1alpha1.JobSpec) { s.MinAvailable = 1 }), nil)
	s.until(rr)
	s.setPhase("j-a-0", corev1.PodFailed, 1)
	s.after(1)
	s.remove(KindPod, "j-a-0")
	s.issue(busv1alpha1.ActionAbortJob).until(abd).issue(busv1alpha1.ActionResumeJob).until(rr)
	s.after(30).has(tally{r: 1, f: 1})
}

func TestThousandsOfDelayedActionsAreToldInFewEvents(t *testing.T) {
	const pods = 3000
	policies := []batchv1alpha1.LifecyclePolicy{in("20s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod))}
	s := given(t, job(ofTask("a", pods, policies...)), nil)
	s.room = pods
	s.until(rr)
	before := len(s.events)
	for _, name := range s.ownPods() {
		s.setPhase(name, corev1.PodFailed, 1)
	}
	s.after(3)
	told := s.events[before:]
	if len(told) != 1 || !strings.Contains(told[0].Message, "RestartPod in 20s") || !strings.Contains(told[0].Message, "2999 more") {
		t.Errorf("%d events are told, the first of them %v; want one that counts", len(told), told[:min(1, len(told))])
	}
	s.after(20)
	if told := s.events[before:]; len(told) > 6 {
		t.Errorf("%d events are told of the restart", len(told))
	}
}
