// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/spans"
)

// secret is what a container has said before it ended.
const secret = "the password is hunter2"

func at(seconds int64) *metav1.Time {
	is := metav1.Unix(1_000_000+seconds, 0)
	return &is
}

func newFramework() *frameworkv1.Framework {
	return &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: "fw", UID: "01234567-89ab-cdef-0123-456789abcdef", CreationTimestamp: *at(0),
	}}
}

func ended(code frameworkv1.CompletionCode, name frameworkv1.CompletionTypeName) frameworkv1.CompletionStatus {
	return frameworkv1.CompletionStatus{Code: code, Phrase: fmt.Sprint("Phrase", code), Type: frameworkv1.CompletionType{Name: name}, Diagnostics: secret}
}

// overAt is the status of a Framework whose second attempt was over at a time, with a number of tasks, of which
// the last has failed.
func overAt(state frameworkv1.FrameworkState, tasks int32) *frameworkv1.FrameworkStatus {
	role := &frameworkv1.TaskRoleStatus{Name: "worker"}
	for i := range tasks {
		end := ended(frameworkv1.CodeFrameworkAttemptCompletion, frameworkv1.CompletionTypeFailed)
		if i == tasks-1 {
			end = ended(7, frameworkv1.CompletionTypeFailed)
		}
		role.TaskStatuses = append(role.TaskStatuses, &frameworkv1.TaskStatus{
			Index: i, StartTime: *at(20), CompletionTime: at(50),
			AttemptStatus: frameworkv1.TaskAttemptStatus{PodName: fmt.Sprint("fw-worker-", i), CompletionStatus: &frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: end}},
		})
	}
	status := &frameworkv1.FrameworkStatus{
		StartTime: *at(1), State: state, TransitionTime: *at(60),
		AttemptStatus: frameworkv1.FrameworkAttemptStatus{
			ID: 1, StartTime: *at(20), RunTime: at(30), CompletionTime: at(60),
			CompletionStatus: &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: ended(7, frameworkv1.CompletionTypeFailed)},
			TaskRoleStatuses: []*frameworkv1.TaskRoleStatus{role},
		},
	}
	if state == frameworkv1.FrameworkCompleted {
		status.CompletionTime = at(61)
	}
	return status
}

// shown is a span in a line: its name, when it was since the creation, and whether it failed.
func shown(all []spans.Span) []string {
	var lines []string
	for _, s := range all {
		line := fmt.Sprintf("%s %d-%d", s.Name, s.Start.Unix()-1_000_000, s.End.Unix()-1_000_000)
		if s.Failed {
			line += fmt.Sprint(" failed with ", s.Numbers["lockstep.code"])
		}
		lines = append(lines, line)
	}
	return lines
}

func TestWhatEndsHasSpans(t *testing.T) {
	running := &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning, AttemptStatus: frameworkv1.FrameworkAttemptStatus{ID: 1}}
	first := overAt(frameworkv1.FrameworkAttemptCompleted, 1)
	first.AttemptStatus.ID = 0
	neverRan := overAt(frameworkv1.FrameworkAttemptCompleted, 0)
	neverRan.AttemptStatus.RunTime = nil
	attempt := []string{"Waiting 20-30", "Running 30-60", "Task worker[1] 20-50 failed with 7", "Task worker[0] 20-50 failed with -400", "Attempt 1 20-60 failed with 7"}
	attempt[3] = fmt.Sprintf("Task worker[0] 20-50 failed with %d", frameworkv1.CodeFrameworkAttemptCompletion)
	for name, tc := range map[string]struct {
		before, after *frameworkv1.FrameworkStatus
		want          []string
	}{
		"nothing, at the beginning":             {before: nil, after: running},
		"nothing, of an attempt that goes on":   {before: running, after: running},
		"an attempt":                            {before: running, after: overAt(frameworkv1.FrameworkAttemptCompleted, 2), want: attempt},
		"an attempt, once":                      {before: overAt(frameworkv1.FrameworkAttemptCompleted, 2), after: overAt(frameworkv1.FrameworkAttemptCompleted, 2)},
		"an attempt, after another that ended":  {before: first, after: overAt(frameworkv1.FrameworkAttemptCompleted, 2), want: attempt},
		"an attempt that never ran":             {before: running, after: neverRan, want: []string{"Waiting 20-60", "Attempt 1 20-60 failed with 7"}},
		"the Framework":                         {before: overAt(frameworkv1.FrameworkAttemptCompleted, 2), after: overAt(frameworkv1.FrameworkCompleted, 2), want: []string{"Framework 0-61 failed with 7"}},
		"the Framework, once":                   {before: overAt(frameworkv1.FrameworkCompleted, 2), after: overAt(frameworkv1.FrameworkCompleted, 2)},
		"an attempt and the Framework, at once": {before: running, after: overAt(frameworkv1.FrameworkCompleted, 2), want: append(attempt[:5:5], "Framework 0-61 failed with 7")},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, shown(spans.Ended(newFramework(), tc.before, tc.after))); diff != "" {
				t.Errorf("unexpected spans (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestSpansAreATreeThatIsFoundByTheUID(t *testing.T) {
	all := spans.Ended(newFramework(), nil, overAt(frameworkv1.FrameworkCompleted, 3))
	parents := map[spans.ID]spans.ID{}
	roots := 0
	for _, s := range all {
		if got := fmt.Sprintf("%x", s.Trace); got != "0123456789abcdef0123456789abcdef" {
			t.Errorf("the trace is %s, want the UID", got)
		}
		if _, twice := parents[s.ID]; twice {
			t.Errorf("two spans have the id %x", s.ID)
		}
		parents[s.ID] = s.Parent
		if s.Parent == (spans.ID{}) {
			roots++
		}
	}
	for id, parent := range parents {
		if _, there := parents[parent]; !there && parent != (spans.ID{}) {
			t.Errorf("the parent %x of %x is none of the spans", parent, id)
		}
	}
	if roots != 1 {
		t.Errorf("there are %d spans without a parent, want the Framework's alone", roots)
	}
	if diff := cmp.Diff(all, spans.Ended(newFramework(), nil, overAt(frameworkv1.FrameworkCompleted, 3))); diff != "" {
		t.Errorf("the same status has other spans the second time:\n%s", diff)
	}
}

// TestALargeAttemptHasSpansOfSomeTasks, and of those that failed before all others.
func TestALargeAttemptHasSpansOfSomeTasks(t *testing.T) {
	all := spans.Ended(newFramework(), nil, overAt(frameworkv1.FrameworkAttemptCompleted, 10000))
	if want := spans.MaxTasks + 3; len(all) != want {
		t.Errorf("there are %d spans, want %d", len(all), want)
	}
	if got := strings.Join(shown(all), "\n"); !strings.Contains(got, "Task worker[9999] 20-50 failed with 7") {
		t.Errorf("the task that failed has no span among\n%s", got)
	}
	if got := all[len(all)-1].Numbers["lockstep.tasks"]; got != 10000 {
		t.Errorf("the attempt is said to have %d tasks, want 10000", got)
	}
}

func TestSpansDoNotTellWhatContainersSaid(t *testing.T) {
	if got := fmt.Sprintf("%+v", spans.Ended(newFramework(), nil, overAt(frameworkv1.FrameworkCompleted, 3))); strings.Contains(got, secret) {
		t.Errorf("a span has the diagnostics: %s", got)
	}
}

func TestATimeOfAnotherClockMakesNoNegativeSpan(t *testing.T) {
	fw := newFramework()
	fw.CreationTimestamp = *at(1000)
	for _, s := range spans.Ended(fw, nil, overAt(frameworkv1.FrameworkCompleted, 1)) {
		if s.End.Sub(s.Start) < 0*time.Second {
			t.Errorf("%s ends before it begins", s.Name)
		}
	}
}
