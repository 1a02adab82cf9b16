// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestAPodThatIsOutOfSightGoesBeforeItsJobGoesOn takes a Pod from the cache while no
// controller runs, as one that has lost its label.
func TestAPodThatIsOutOfSightGoesBeforeItsJobGoesOn(t *testing.T) {
	tests := map[busv1alpha1.Action]batchv1alpha1.JobPhase{
		busv1alpha1.ActionRestartJob:   pp,
		busv1alpha1.ActionAbortJob:     abd,
		busv1alpha1.ActionCompleteJob:  cd,
		busv1alpha1.ActionTerminateJob: td,
	}
	for action, next := range tests {
		t.Run(string(action), func(t *testing.T) {
			s := given(t, job(ofTask("a", 3)), nil)
			s.until(rr)
			before := s.pod("j-a-1").UID
			s.asleep = true
			s.command(action)
			s.crash()
			delete(s.cache.objects, ObjectKey{KindPod, "j-a-1"})
			hide := func() bool { pod := s.pod("j-a-1"); return pod != nil && pod.UID == before }
			s.onAction = func(a plan.Action) {
				if a.Verb == plan.Create && a.Kind == KindPod && hide() {
					t.Errorf("%s while the old Pod j-a-1 is there", a)
				}
			}
			s.onWrite = func(was, is *batchv1alpha1.JobStatus) {
				if is.State.Phase == next && was.State.Phase != next && hide() {
					t.Errorf("the Job becomes %s while the old Pod j-a-1 is there", next)
				}
			}
			s.asleep = false
			s.after(5)
			if hide() {
				t.Errorf("the old Pod j-a-1 is there, the Job %s", s.phase())
			}
			if next != pp && s.phase() != next || next == pp && s.phase() != rr {
				t.Errorf("the Job is %s", s.phase())
			}
		})
	}
}

// TestAPodThatSucceedsWhileItIsLookedForKeepsNoJobFromItsEnd: it comes into sight, and stays.
func TestAPodThatSucceedsWhileItIsLookedForKeepsNoJobFromItsEnd(t *testing.T) {
	s := given(t, job(ofTask("a", 3)), nil)
	s.until(rr)
	s.asleep = true
	s.command(busv1alpha1.ActionTerminateJob)
	s.crash()
	delete(s.cache.objects, ObjectKey{KindPod, "j-a-1"})
	s.onWrite = func(was, is *batchv1alpha1.JobStatus) {
		if is.State.Phase == batchv1alpha1.JobTerminating && was.State.Phase != batchv1alpha1.JobTerminating {
			s.setPhase("j-a-1", corev1.PodSucceeded, 0)
		}
	}
	s.asleep = false
	s.after(5)
	if s.phase() != td {
		t.Errorf("the Job is %s, its record %v", s.phase(), s.written.ControlledResources)
	}
}

// TestAPodWithoutItsLabelGoesWithItsJob: the controller that has followed it dies when the Job
// begins to go, and the next one does not see it.
func TestAPodWithoutItsLabelGoesWithItsJob(t *testing.T) {
	command := func(action busv1alpha1.Action) func(*simulation) {
		return func(s *simulation) { s.command(action) }
	}
	tests := map[string]struct {
		goes func(*simulation)
		// dies is the phase in which the controller dies, ends that in which the Job ends.
		dies, ends batchv1alpha1.JobPhase
	}{
		"aborted":                       {goes: command(busv1alpha1.ActionAbortJob), dies: ab, ends: abd},
		"terminated":                    {goes: command(busv1alpha1.ActionTerminateJob), dies: tt, ends: td},
		"restarted":                     {goes: command(busv1alpha1.ActionRestartJob), dies: rs, ends: rr},
		"completed by enough successes": {goes: func(s *simulation) { succeed(s, "j-b-0") }, dies: cd, ends: cd},
		"failed by its last restart":    {goes: func(s *simulation) { s.setPhase("j-b-0", corev1.PodFailed, 1) }, dies: ff, ends: ff},
	}
	for name, tc := range tests {
		for _, before := range []bool{true, false} {
			if !before && tc.dies == rs {
				continue // It is marked, or of an older version, when it is found.
			}
			t.Run(fmt.Sprintf("%s, the label is lost before: %v", name, before), func(t *testing.T) {
				s := given(t, withSpec(job(ofTask("a", 2, on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionAbortJob)),
					ofTask("b", 1, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod))), func(s *batchv1alpha1.JobSpec) {
					s.MinSuccess = ptr.To[int32](1)
					s.MaxRetry = 1
				}), nil)
				if tc.dies == rs {
					s.job.Spec.MaxRetry = 9
				}
				s.until(rr).after(1)
				pod := s.pod("j-a-1")
				loseLabel := func() {
					delete(pod.Labels, batchv1alpha1.KeyJobName)
					delete(s.cache.objects, ObjectKey{KindPod, "j-a-1"})
				}
				if before {
					clear(s.controller.own)
					loseLabel()
					s.after(1).sees(pp, rr)
				}
				s.onWrite = func(was, is *batchv1alpha1.JobStatus) {
					if is.State.Phase == tc.dies && was.State.Phase != tc.dies {
						s.crashAfter = 0
						if !before {
							loseLabel()
						}
					}
				}
				tc.goes(s)
				s.after(10)
				if s.uidOf("j-a-1") == string(pod.UID) {
					t.Errorf("the Pod is left, the Job %s after %v, its record %v", s.phase(), s.phases, s.written.ControlledResources)
				}
				if s.phase() != tc.ends {
					t.Errorf("the Job is %s, want %s", s.phase(), tc.ends)
				}
			})
		}
	}
}

// TestPodsWhoseEndsAreToldAreNotLookedFor when a Job stops.
func TestPodsWhoseEndsAreToldAreNotLookedFor(t *testing.T) {
	s := given(t, job(ofTask("a", 20)), nil)
	s.until(rr).after(1)
	s.onAction = func(a plan.Action) {
		if a.Verb == plan.ConfirmNo {
			t.Errorf("it is looked for %s, whose end an event has told", a.Name)
		}
	}
	s.issue(busv1alpha1.ActionAbortJob).after(5).sees(pp, rr, ab, abd)
}

// TestAPodThatHadEndedIsMadeAnewThoughItIsOutOfSight: its part is restarted, and what it came to
// counts for the new run as little as it would in sight.
func TestAPodThatHadEndedIsMadeAnewThoughItIsOutOfSight(t *testing.T) {
	hide := func(s *simulation, name string) {
		delete(s.pod(name).Labels, batchv1alpha1.KeyJobName)
		clear(s.controller.own)
		delete(s.cache.objects, ObjectKey{KindPod, name})
	}
	tests := map[string]struct {
		policy batchv1alpha1.LifecyclePolicy
		// happens brings about the restart of task a, with a Pod of it out of sight.
		happens func(*simulation)
		// anew are the Pods that are made anew.
		anew string
	}{
		"one that has succeeded, beside one that fails": {on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartTask), func(s *simulation) {
			succeed(s, "j-a-1")
			s.after(1)
			hide(s, "j-a-1")
			s.setPhase("j-a-0", corev1.PodFailed, 1)
		}, "++-"},
		"all of a task, after a while": {in("5s", on(busv1alpha1.EventTaskCompleted, busv1alpha1.ActionRestartTask)), func(s *simulation) {
			succeed(s, "j-a-0", "j-a-1")
			s.after(1)
			hide(s, "j-a-0")
			hide(s, "j-a-1")
		}, "++-"},
		"one that asks for it, by a controller that dies": {on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod), func(s *simulation) {
			s.setPhase("j-a-0", corev1.PodFailed, 1)
			hide(s, "j-a-0")
			s.controller.strays[ObjectKey{KindPod, "j-a-0"}] = copyOf(s.pod("j-a-0")) // It has followed the Pod.
			s.onWrite = func(was, is *batchv1alpha1.JobStatus) {
				if is.State.Phase == rs && was.State.Phase != rs {
					s.crashAfter = 0
				}
			}
		}, "+--"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 2, tc.policy), ofTask("b", 1)), func(s *batchv1alpha1.JobSpec) {
				s.MinAvailable, s.MaxRetry = 1, 9
			}), nil)
			s.until(rr).after(1)
			names := s.ownPods()
			before := map[string]string{}
			for _, name := range names {
				before[name] = s.uidOf(name)
			}
			tc.happens(s)
			s.after(10).has(tally{r: 3, rc: 1})
			got := ""
			for _, name := range names {
				got += map[bool]string{true: "-", false: "+"}[s.uidOf(name) == before[name]]
			}
			if got != tc.anew {
				t.Errorf("made anew: %s, want %s", got, tc.anew)
			}
		})
	}
}
