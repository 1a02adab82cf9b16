// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// TestACommandIsExecutedOnceWhereverTheControllerDies lets a controller die after each of
// its writes, and begin again with the Command in its cache.
func TestACommandIsExecutedOnceWhereverTheControllerDies(t *testing.T) {
	for writes := range 12 {
		t.Run(fmt.Sprintf("after %d writes", writes), func(t *testing.T) {
			s := given(t, job(ofTask("a", 2)), nil)
			s.until(rr)
			s.command(busv1alpha1.ActionRestartJob)
			s.crashAfter = writes
			s.until(rr).after(5)
			s.has(tally{r: 2, rc: 1})
			if left := s.names(KindCommand); len(left) > 0 {
				t.Errorf("Commands: %v", left)
			}
		})
	}
}

// TestACommandThatIsGoneButStillInACacheIsNotExecutedAgain lets a controller begin with a
// cache of Commands that is old.
func TestACommandThatIsGoneButStillInACacheIsNotExecutedAgain(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	c := s.command(busv1alpha1.ActionRestartJob)
	s.run()
	s.until(rr)
	s.crash()
	for _, claim := range []string{"", "0"} {
		old := c.DeepCopy()
		if claim != "" {
			old.Annotations = map[string]string{KeyClaim: claim}
		}
		s.cache.objects[ObjectKey{KindCommand, c.Name}] = old
		s.run()
		s.has(tally{r: 2, rc: 1})
		delete(s.cache.objects, ObjectKey{KindCommand, c.Name})
		s.crash()
	}
}

// TestTheStatusIsNotWrittenBeforeTheCommandIsGone lets the deletion of a Command fail.
func TestTheStatusIsNotWrittenBeforeTheCommandIsGone(t *testing.T) {
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	s.fate = func(a plan.Action) fate {
		if a.Verb == plan.Delete && a.Kind == KindCommand {
			return refused
		}
		return done
	}
	s.command(busv1alpha1.ActionAbortJob)
	s.command(busv1alpha1.ActionTerminateJob)
	s.after(10).sees(pp, rr, ab)
	s.hasPods()
	s.fate = func(plan.Action) fate { return done }
	s.until(abd)
}

func TestWhatIsOnTheWireIsBounded(t *testing.T) {
	const jobs, most = 200, 60
	tasks := ofTask("a", jobs)
	s := given(t, job(tasks), nil)
	s.room = jobs
	s.writeFrom = plan.PersistSoon // What gates nothing waits for others.
	s.after(3)
	for i := range jobs {
		s.setPhase(podName("j", "a", int32(i)), corev1.PodSucceeded, 0)
		s.now = s.now.Add(10 * time.Millisecond)
		s.run()
	}
	if s.phase() != cd || s.writes > most {
		t.Errorf("%s after %d writes, want Completed after at most %d", s.phase(), s.writes, most)
	}
}

// TestCommandsOfOneSecondHaveTheirTurnsInOrder, whatever their names, and the claim of the first
// does not put it behind the second.
func TestCommandsOfOneSecondHaveTheirTurnsInOrder(t *testing.T) {
	for _, crash := range []bool{false, true} {
		s := given(t, job(ofTask("a", 2)), nil)
		s.until(rr).after(1)
		s.asleep = true
		s.rv = max(s.rv, 98) // So the second has a resource version of a digit more.
		for _, c := range []struct {
			action busv1alpha1.Action
			name   string
		}{{busv1alpha1.ActionAbortJob, "z"}, {busv1alpha1.ActionTerminateJob, "y"}} {
			s.store(KindCommand, &busv1alpha1.Command{
				ObjectMeta: metav1.ObjectMeta{Name: c.name, UID: s.newUID(), CreationTimestamp: metav1.NewTime(s.now.Truncate(time.Second))},
				Action:     c.action, Target: metav1.NewControllerRef(s.job, batchv1alpha1.JobGroupVersionKind),
			})
		}
		if crash {
			s.crashAfter = 2 // The first is claimed by then.
		}
		s.asleep = false
		claims := 0
		s.onAction = func(a plan.Action) {
			if a.Verb == plan.Update && a.Kind == KindCommand {
				claims++
			}
		}
		s.after(10).sees(pp, rr, ab, abd)
		if left := s.names(KindCommand); len(left) > 0 || claims != 1 {
			t.Errorf("Commands %v are left, %d were claimed", left, claims)
		}
	}
}

// TestThousandsOfCommandsThatDoNothingGoTogether issues as many as a loop that went wrong, and
// two at the end that count: the second does nothing before the first has.
func TestThousandsOfCommandsThatDoNothingGoTogether(t *testing.T) {
	const useless = 2000
	s := given(t, job(ofTask("a", 2)), nil)
	s.until(rr)
	looks := 0
	s.onAction = func(a plan.Action) {
		if a.Verb == plan.CheckStatus {
			looks++
		}
	}
	for range useless {
		s.command(busv1alpha1.ActionResumeJob)
	}
	s.now = s.now.Add(time.Second)
	s.command(busv1alpha1.ActionAbortJob)
	s.now = s.now.Add(time.Second)
	s.command(busv1alpha1.ActionResumeJob)
	s.after(3).has(tally{r: 2})
	if left := s.names(KindCommand); len(left) > 0 || looks > 2*useless/maxDismissals {
		t.Errorf("%d Commands are left, the status was looked at %d times", len(left), looks)
	}
}

// TestNothingIsLookedForWhileACommandGoes: what a look would find could not be put on record, so
// it would be repeated without end.
func TestNothingIsLookedForWhileACommandGoes(t *testing.T) {
	s := given(t, job(ofTask("a", 3)), nil)
	s.until(rr)
	s.asleep = true
	s.command(busv1alpha1.ActionAbortJob)
	s.crash()
	s.remove(KindPod, "j-a-1")
	looks := 0
	s.beforeAction = func(a plan.Action) {
		if a.Verb == plan.Delete && a.Kind == KindCommand {
			s.prompt = false // Nobody tells that it is gone.
		}
		if a.Verb == plan.ConfirmNo {
			looks++
		}
	}
	s.run()
	if s.phase() != ab || looks > 0 {
		t.Errorf("the Job is %s, and %d looks were taken", s.phase(), looks)
	}
	s.prompt, s.asleep = true, false
	s.deliverAll()
	s.until(abd)
	if looks == 0 {
		t.Errorf("nobody has looked for the Pod that is missing")
	}
}

func TestTheUserIsToldWhyACommandOrARestartWaits(t *testing.T) {
	refuse := func(kind string) func(plan.Action) fate {
		return func(a plan.Action) fate {
			if a.Verb == plan.Update && a.Kind == kind {
				return refused
			}
			return done
		}
	}
	tests := map[string]func(s *simulation){
		"a Command of a Running Job": func(s *simulation) {
			s.fate = refuse(KindCommand)
			s.issue(busv1alpha1.ActionAbortJob).sees(pp, rr)
		},
		"a Command of an Aborted Job": func(s *simulation) {
			s.issue(busv1alpha1.ActionAbortJob).until(abd)
			s.fate = refuse(KindCommand)
			s.issue(busv1alpha1.ActionResumeJob).after(1).sees(pp, rr, ab, abd)
		},
		"a mark": func(s *simulation) {
			s.fate = refuse(KindPod)
			s.setPhase("j-a-0", corev1.PodFailed, 1)
			s.after(2).sees(pp, rr, rs)
		},
		"the mark of a rescale": func(s *simulation) {
			s.fate = refuse(KindPod)
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 1 })
		},
		"the minimum of the gang": func(s *simulation) {
			s.fate = refuse(KindPodGroup)
			s.edit(func(j *batchv1alpha1.Job) { j.Spec.Tasks[0].Replicas = 1 })
		},
	}
	for name, story := range tests {
		t.Run(name, func(t *testing.T) {
			s := given(t, job(ofTask("a", 2, on(busv1alpha1.EventPodFailed, busv1alpha1.ActionRestartPod))), nil)
			s.until(rr)
			story(s)
			told := 0
			for _, event := range s.after(3).events {
				if event.Reason == ReasonFailedUpdate && event.Warning {
					told++
				}
			}
			if told != 1 {
				t.Errorf("it is told %d times, want once: %v", told, s.events)
			}
			if s.told(ReasonFailedCreate) {
				t.Errorf("a creation is told of: %v", s.events)
			}
		})
	}
}
