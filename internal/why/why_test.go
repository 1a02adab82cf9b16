// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

// tree is a Framework in a state, with a condition if that has a type.
func tree(state string, condition metav1.Condition) *view.Tree {
	t := &view.Tree{Row: view.Row{Namespace: "a", Name: "training", State: state, Total: 4}, Attempt: &view.Attempt{ID: 1, Started: now.Add(-time.Minute)}}
	if condition.Type != "" {
		t.Conditions = []metav1.Condition{condition}
	}
	return t
}

func TestTheDominantReasonIsTheFirstThatHolds(t *testing.T) {
	quota := metav1.Condition{Type: "TasksBlocked", Status: "True", Reason: "QuotaExceeded", Message: "exceeded quota: gpus"}
	queued := metav1.Condition{Type: "Admitted", Status: "False", Reason: "InQueue", Message: "no quota is free"}
	refused := metav1.Condition{Type: "Admitted", Status: "False", Reason: "NotAdmissible", Message: "at most 18 roles"}
	failed := tree(view.StateFailed, quota)
	failed.Attempt.End = &view.End{Code: 137, Phrase: "ContainerSigKillReceived", Trigger: "worker/3", Diagnostics: "killed"}
	failed.History = []view.PastAttempt{{ID: 0, State: view.StateFailed, End: view.End{Code: 137, Phrase: "ContainerSigKillReceived"}, Next: "none"}}
	unseen := tree(view.StateCreating, metav1.Condition{})
	unseen.Attempt = nil
	retrying := tree(view.StateRetrying, metav1.Condition{})
	retrying.Waiting = "next attempt in 50s"
	for name, c := range map[string]struct {
		tree          *view.Tree
		reason        answers.Reason
		message, next string
	}{
		"has ended":              {failed, view.StateFailed, "it has ended with code 137: worker/3: ContainerSigKillReceived: killed", "`history`"},
		"is not started":         {tree(view.StateNotStarted, quota), ReasonNotStarted, "its executionType is Create", "`start`"},
		"is seen by nobody":      {unseen, ReasonUnseen, "no lockstep-controller has seen it", "running"},
		"is in a queue":          {tree(view.StateCreating, queued), ReasonQueued, "Kueue holds it back (InQueue): no quota is free", "Workload"},
		"can't be in its queue":  {tree(view.StateCreating, refused), ReasonNotAdmissible, "can't be in its queue of Kueue: at most 18 roles", "change the Framework"},
		"has no quota":           {tree(view.StatePreparing, quota), "QuotaExceeded", "exceeded quota: gpus", "ResourceQuota"},
		"waits for its retry":    {retrying, ReasonRetrying, "attempt 1 is over; next attempt in 50s", "nothing shortens"},
		"ends":                   {tree(view.StateEnding, metav1.Condition{}), ReasonEnding, "attempt 1 ends", "Pods have ended"},
		"waits for its Pods":     {tree(view.StatePreparing, metav1.Condition{}), "", "", ""},
		"runs, as far as it can": {tree(view.StateRunning, metav1.Condition{}), "", "", ""},
	} {
		answer, known := Before(c.tree)
		if known != (c.reason != "") || answer.Reason != c.reason || !strings.Contains(answer.Message, c.message) || !strings.Contains(answer.Next, c.next) {
			t.Errorf("one that %s: %v %+v", name, known, answer)
		}
	}
	unknown := metav1.Condition{Type: "TasksBlocked", Status: "True", Reason: "UnknownFields", Message: "no Pods are created: spec.a: unknown field"}
	if answer, _ := Before(tree(view.StatePreparing, unknown)); !strings.Contains(answer.Message, "spec.a") || !strings.Contains(answer.Next, "correct the fields") {
		t.Errorf("one whose template is refused: %+v", answer)
	}
	if answer, _ := Before(failed); len(answer.Evidence) != 1 || answer.Evidence[0] != "attempt 0: Failed, code 137, ContainerSigKillReceived; none" {
		t.Errorf("the evidence is %q", answer.Evidence)
	}
}

func TestFieldsThatTheAPIServerDropsAreNamed(t *testing.T) {
	dropped := metav1.Condition{Type: "UnknownFields", Status: "True", Reason: "UnknownFields", Message: "spec.a: unknown field"}
	if lines := UnknownFields(tree(view.StateRunning, dropped)); len(lines) != 1 || !strings.Contains(lines[0], "spec.a: unknown field") {
		t.Errorf("the lines are %q", lines)
	}
	if lines := UnknownFields(tree(view.StateRunning, metav1.Condition{})); lines != nil {
		t.Errorf("of one without such fields the lines are %q", lines)
	}
}

func TestWithoutAGangTheTasksSayWhatTheyWaitFor(t *testing.T) {
	waits := tree(view.StatePreparing, metav1.Condition{})
	waits.Running = 1
	waits.Attempt.Roles = []view.Role{{Name: "worker", Tasks: []view.Tasks{
		{Indexes: "0", Count: 1, State: view.StateRunning},
		{Indexes: "1", Count: 1, State: view.StatePreparing, Reason: "Unschedulable", Message: "0/3 nodes are available"},
		{Indexes: "2-3", Count: 2, State: view.StatePreparing, Reason: "ImagePullBackOff", Message: "no such image"},
	}}}
	answer := Tasks(waits, now)
	if answer.Reason != "ImagePullBackOff" || answer.Message != "2 of 4 tasks wait, as task worker/2-3 does: no such image" || !strings.Contains(answer.Next, "name of the image") {
		t.Errorf("got %+v", answer)
	}
	if got := strings.Join(answer.Evidence, "; "); got != "2 tasks: ImagePullBackOff; 1 task: Unschedulable; 1 task running" {
		t.Errorf("the evidence is %q", got)
	}
	if len(answer.Tasks) != 2 || answer.Tasks[0].Reason != "Unschedulable" {
		t.Errorf("the tasks are %+v", answer.Tasks)
	}
	retrying := tree(view.StatePreparing, metav1.Condition{})
	retrying.Attempt.Roles = []view.Role{{Name: "worker", Tasks: []view.Tasks{{Indexes: "0", Count: 1, State: view.StateRetrying, Until: now.Add(time.Minute)}}}}
	if answer := Tasks(retrying, now); answer.Reason != ReasonRetrying || !strings.Contains(answer.Message, "until 2026-11-25T12:01:00Z") {
		t.Errorf("got %+v", answer)
	}
	if answer := Tasks(tree(view.StatePreparing, metav1.Condition{}), now); answer.Reason != ReasonCreating || answer.Message != "its Pods are being created, since 1m0s" {
		t.Errorf("got %+v", answer)
	}
	ahead := tree(view.StatePreparing, metav1.Condition{})
	ahead.Attempt.Started = now.Add(time.Hour) // by the controller's clock
	if answer := Tasks(ahead, now); answer.Message != "its Pods are being created, since 0s" {
		t.Errorf("of an attempt that begins in an hour it says %q", answer.Message)
	}
}

// TestTasksWithoutAPodThatCanBePlacedSayWhatTheyWaitFor: nobody is to create Pods for a Framework.
func TestTasksWithoutAPodThatCanBePlacedSayWhatTheyWaitFor(t *testing.T) {
	ending := view.Tasks{Indexes: "0", Count: 1, State: view.StateEnding, PodName: "training-worker-0", Node: "node-7"}
	retrying := view.Tasks{Indexes: "1-2", Count: 2, State: view.StateRetrying, Until: now.Add(time.Minute)}
	creating := view.Tasks{Indexes: "3", Count: 1, State: view.StateCreating}
	for name, tc := range map[string]struct {
		tasks   []view.Tasks
		reason  answers.Reason
		message string
	}{
		"an old Pod is ending":     {[]view.Tasks{ending}, ReasonEnding, "1 of 4 tasks can be run again when the old Pods have ended, such as training-worker-0 on node node-7"},
		"a retry is to come":       {[]view.Tasks{retrying}, ReasonRetrying, "2 of 4 tasks wait for their retry, the first until 2026-11-25T12:01:00Z"},
		"a Pod is about to come":   {[]view.Tasks{creating}, ReasonCreating, "1 of 4 tasks are about to get their Pods"},
		"most wait for a retry":    {[]view.Tasks{ending, retrying, creating}, ReasonRetrying, "2 of 4 tasks wait"},
		"one ends, and one begins": {[]view.Tasks{creating, ending}, ReasonEnding, "1 of 4 tasks can"},
		"all have Pods":            {[]view.Tasks{{Count: 4, State: view.StatePreparing}}, "", ""},
	} {
		waits := tree(view.StatePreparing, metav1.Condition{})
		waits.Attempt.Roles = []view.Role{{Name: "worker", Tasks: tc.tasks}}
		answer, known := Missing(waits)
		if known != (tc.reason != "") || answer.Reason != tc.reason || !strings.HasPrefix(answer.Message, tc.message) {
			t.Errorf("%s: %v, %s: %s", name, known, answer.Reason, answer.Message)
		}
	}
}
