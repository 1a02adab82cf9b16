// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

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
