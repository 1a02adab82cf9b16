// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

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
	s.after(3).has(tally{r: 2, rc: 1})
	if left := s.names(KindCommand); len(left) > 0 || looks > 2*useless/maxDismissals {
		t.Errorf("%d Commands are left, the status was looked at %d times", len(left), looks)
	}
}
