// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
)

// missing are tasks without a Pod that could be placed, for one reason.
type missing struct {
	state  string
	reason answers.Reason
	next   string
	count  int
	// until is when the earliest retry among these tasks is due; zero if that is not known. pod names, as an example
	// for the message, a Pod of an earlier attempt that is still ending, and its node; "" if there is none.
	until time.Time
	pod   string
}

// Missing explains a wait by tasks without a Pod that could be placed: the Pod of their last attempt is ending, their
// retry is due later, or their Pod is about to be created. The most frequent cause is the reason. Missing returns false
// if there are no such tasks.
func Missing(tree *view.Tree) (answers.Why, bool) {
	answer := answers.Why{Namespace: tree.Namespace, Name: tree.Name, Unknown: slices.Clone(tree.Unread)}
	all := []missing{
		{state: view.StateEnding, reason: ReasonEnding, next: "wait until the old Pods have ended; if one does not, look whether its node answers"},
		{state: view.StateRetrying, reason: ReasonRetrying, next: "wait: nothing shortens the delay"},
		{state: view.StateCreating, reason: ReasonCreating, next: "if this lasts, look at the events of the Framework"},
	}
	for _, role := range tree.Attempt.Roles {
		for _, tasks := range role.Tasks {
			for i := range all {
				if all[i].state == tasks.State {
					all[i].add(&tasks)
					if len(answer.Tasks) < answers.MaxTasks {
						answer.Tasks = append(answer.Tasks, answers.Task{Pod: cmp.Or(tasks.PodName, tasks.Indexes), Role: role.Name, Reason: tasks.State, Message: all[i].says(&tasks)})
					}
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b missing) int { return cmp.Compare(b.count, a.count) })
	top := &all[0]
	if top.count == 0 {
		return answer, false
	}
	answer.Reason, answer.Next, answer.Message = top.reason, top.next, top.message(tree.Total)
	for _, m := range all {
		if m.count > 0 {
			answer.Evidence = append(answer.Evidence, text.Counted(m.count, "task")+": "+m.state)
		}
	}
	return answer, true
}

// Told returns why a Framework does not run if the user may not read its gang: what the Framework's status says about
// the gang or, if that says nothing, about the tasks.
func Told(tree *view.Tree, now time.Time) answers.Why {
	gang := tree.Attempt.Gang
	if gang == nil || gang.Reason == "" {
		return Tasks(tree, now)
	}
	return answers.Why{Namespace: tree.Namespace, Name: tree.Name, Reason: answers.Reason(gang.Reason), Next: waitingNext(corev1.PodReasonUnschedulable, gang.Message),
		Message: "the scheduler has said: " + gang.Message, Unknown: slices.Clone(tree.Unread)}
}

// add counts the tasks of a row.
func (m *missing) add(tasks *view.Tasks) {
	m.count += tasks.Count
	m.until = times.Sooner(m.until, tasks.Until)
	if m.pod == "" && tasks.PodName != "" {
		m.pod = tasks.PodName
		if tasks.Node != "" {
			m.pod += " on node " + tasks.Node
		}
	}
}

// says returns the text about the tasks of a row.
func (m *missing) says(tasks *view.Tasks) string {
	switch {
	case m.state == view.StateEnding && tasks.Node != "":
		return "the old Pod is ending on node " + tasks.Node
	case m.state == view.StateEnding:
		return "the old Pod is ending"
	case !tasks.Until.IsZero():
		return "it is run again at " + at(tasks.Until)
	default:
		return ""
	}
}

// message returns the text about all tasks.
func (m *missing) message(total int32) string {
	waits := fmt.Sprintf("%d of %d tasks", m.count, total)
	switch m.state {
	case view.StateEnding:
		waits += " can be run again when the old Pods have ended"
		if m.pod != "" {
			waits += ", such as " + m.pod
		}
	case view.StateRetrying:
		waits += " wait for their retry"
		if !m.until.IsZero() {
			waits += ", the first until " + at(m.until)
		}
	default:
		waits += " are about to get their Pods"
	}
	return waits
}

func at(when time.Time) string { return when.UTC().Format(time.RFC3339) }
