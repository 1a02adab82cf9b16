// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// creations counts the Pods that are made.
func (s *simulation) creations() *int {
	n := 0
	s.onAction = func(a plan.Action) {
		if a.Verb == plan.Create && a.Kind == KindPod {
			n++
		}
	}
	return &n
}

// TestATemplateCannotSayWhatOnlyTheControllerSays has the controller's own annotations in a
// template: Pods that were born with a mark would be deleted and made again without end.
func TestATemplateCannotSayWhatOnlyTheControllerSays(t *testing.T) {
	j := job(ofTask("a", 2, in("1s", on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob))))
	j.Spec.Tasks[0].Template.Raw = []byte(`{"metadata":{"annotations":{"mine":"x","` + KeyMark + `":"x","` + KeyEvictedAt + `":"2020-01-01T00:00:00Z"}},
		"spec":{"containers":[{"name":"c","image":"i"}]}}`)
	s := given(t, j, nil)
	made := s.creations()
	s.until(rr).after(3).has(tally{r: 2})
	if *made != 2 || s.pod("j-a-0").Annotations["mine"] != "x" {
		t.Errorf("%d Pods were made, want 2; annotations %v", *made, s.pod("j-a-0").Annotations)
	}
}

// TestAPodIsFoundByItsName takes the labels off a Pod. Its name and its owner still say
// whose it is.
func TestAPodIsFoundByItsName(t *testing.T) {
	for name, policy := range map[string][]batchv1alpha1.LifecyclePolicy{
		"without policies": nil,
		"with one":         {on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionRestartJob)},
	} {
		t.Run(name, func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, policy...)), nil)
			s.until(rr)
			pod := s.pod("j-a-1")
			pod.Labels = nil
			s.store(KindPod, pod)
			made := s.creations()
			s.after(3).has(tally{r: 2})
			if *made != 0 {
				t.Errorf("%d Pods were made", *made)
			}
		})
	}
}

// TestAPodThatEndsWhileTheCommandGoesCounts ends a Pod between the write of Aborting and
// the deletion of the Command.
func TestAPodThatEndsWhileTheCommandGoesCounts(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	s.onWrite = func(before, after *batchv1alpha1.JobStatus) {
		if before.State.Phase == rr && after.State.Phase == ab {
			s.setPhase("j-a-0", corev1.PodSucceeded, 0)
		}
	}
	s.command(busv1alpha1.ActionAbortJob)
	s.until(abd).has(tally{s: 1})
	s.hasPods("j-a-0")
}

// TestADelayAfterATaskHasFailedOutlivesControllers replaces the controller more often than the
// delay lasts. The last restart of a container tells since when.
func TestADelayAfterATaskHasFailedOutlivesControllers(t *testing.T) {
	s := given(t, job(ofTask("a", 1, in("10s", on(busv1alpha1.EventTaskFailed, busv1alpha1.ActionTerminateJob)))), nil)
	s.until(rr)
	pod := s.pod("j-a-0")
	container := &pod.Status.ContainerStatuses[0]
	container.RestartCount = 3
	container.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.NewTime(s.now)}
	s.store(KindPod, pod)
	for range 9 {
		s.after(1)
		s.crash()
	}
	s.sees(pp, rr)
	s.after(2).sees(pp, rr, tt, td)
}
