// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

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

// TestASuccessThatAStopHasNotSeenCounts ends a Pod just before it is deleted, while the cache is
// behind. A resumed Job does not run it again.
func TestASuccessThatAStopHasNotSeenCounts(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	s.command(busv1alpha1.ActionAbortJob)
	s.prompt = false
	s.onWrite = func(before, after *batchv1alpha1.JobStatus) {
		if after.State.Phase == ab && before.State.Phase != ab {
			s.setPhase("j-a-0", corev1.PodSucceeded, 0)
			s.deliver(KindCommand, 10)
		}
	}
	s.run()
	s.deliver(KindCommand, 10)
	s.run()
	s.prompt = true
	s.deliverAll()
	s.until(abd).has(tally{s: 1})
	s.hasPods("j-a-0")
}

// TestADelayAfterAnEvictionOutlivesControllers replaces the controller more often than the delay
// lasts, while the Pod can't be made again.
func TestADelayAfterAnEvictionOutlivesControllers(t *testing.T) {
	s := given(t, job(ofTask("a", 2, in("10s", on(busv1alpha1.EventPodEvicted, busv1alpha1.ActionTerminateJob)))), nil)
	s.until(rr)
	s.fate = func(a plan.Action) fate {
		return map[bool]fate{true: refused, false: done}[a.Verb == plan.Create && a.Kind == KindPod]
	}
	s.remove(KindPod, "j-a-1")
	for range 9 {
		s.after(1)
		s.crash()
	}
	if s.phase() == tt || s.phase() == td {
		t.Fatalf("it is too early: %v", s.phases)
	}
	s.after(2)
	if s.phase() != td {
		t.Errorf("the Job is %s after its delay: %v", s.phase(), s.phases)
	}
}

// TestAPodThatStillEndsIsProtected has Pods that run on after the end of their Job: its Service,
// hosts and NetworkPolicy stay as long.
func TestAPodThatStillEndsIsProtected(t *testing.T) {
	s := given(t, withSpec(job(ofTask("short", 1), ofTask("long", 1)), func(s *batchv1alpha1.JobSpec) {
		s.MinSuccess = ptr.To[int32](1)
		s.Plugins = map[string]batchv1alpha1.PluginFlags{"svc": nil}
	}), nil)
	s.until(rr)
	s.setPhase("j-short-0", corev1.PodSucceeded, 0)
	s.run()
	if s.phase() != cd || s.pod("j-long-0").DeletionTimestamp == nil {
		t.Fatalf("the Job is %s, the Pod %v", s.phase(), s.pod("j-long-0"))
	}
	left := func() int {
		return len(s.names(KindService)) + len(s.names(KindConfigMap)) + len(s.names(KindNetworkPolicy))
	}
	if left() != 3 {
		t.Errorf("%d of 3 objects are left while a Pod ends", left())
	}
	s.endPod("j-long-0")
	s.after(1)
	if left() != 0 {
		t.Errorf("%d objects are left at the end", left())
	}
}

// TestASpecThatCantBeReadIsToldInTheState has a Job that runs get a spec that can't be read, as
// Volcano's CRD may let in: Pods stay, Commands are obeyed, and it goes on once that is mended.
func TestASpecThatCantBeReadIsToldInTheState(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	sane := s.job.Spec
	s.unreadable = "replicas is no number"
	s.edit(func(j *batchv1alpha1.Job) { j.Spec = batchv1alpha1.JobSpec{} })
	s.after(2).sees(pp, rr, pp)
	s.hasPods("j-a-0", "j-a-1")
	if state := s.written.State; state.Reason != ReasonInvalidJob || !strings.Contains(state.Message, s.unreadable) || !s.told(ReasonInvalidJob) {
		t.Errorf("state %+v, events %v", state, s.events)
	}
	for range 5 {
		s.issue(busv1alpha1.ActionRestartJob) // Nobody knows how often that may be.
	}
	s.after(2).has(tally{rc: 5})
	if s.phase() != pp {
		t.Errorf("the Job is %s", s.phase())
	}
	s.unreadable = ""
	s.edit(func(j *batchv1alpha1.Job) { j.Spec = sane })
	s.until(rr).has(tally{r: 2, rc: 5})
}
