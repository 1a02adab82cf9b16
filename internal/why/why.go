// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

// Package why explains why a Framework is not running, as far as the Framework itself shows it: it is not started or is
// held back, its Pods can't be created, it waits for the next attempt, or it has ended. What keeps a gang from nodes is
// explained by package whatif. Package why is pure.
package why

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/view"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/answers"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/whatif"
)

// These reasons of Frameworks are used besides the reasons of gangs. Other reasons come from conditions, such as
// QuotaExceeded, and from completion types, such as Failed.
const (
	// ReasonNotStarted: executionType is Create.
	ReasonNotStarted answers.Reason = "NotStarted"
	// ReasonUnseen: no controller has seen the Framework.
	ReasonUnseen answers.Reason = "NotSeen"
	// ReasonQueued: Kueue has not admitted the Framework.
	ReasonQueued answers.Reason = "Queued"
	// ReasonNotAdmissible: the Framework can't be in the queue of Kueue.
	ReasonNotAdmissible answers.Reason = frameworkv1.ReasonNotAdmissible
	// ReasonRetrying: the next attempt is to come.
	ReasonRetrying answers.Reason = "Retrying"
	// ReasonEnding: the attempt ends.
	ReasonEnding answers.Reason = "Ending"
	// ReasonRunning: the attempt runs.
	ReasonRunning answers.Reason = "Running"
	// ReasonCreating: the Pods are about to be created.
	ReasonCreating answers.Reason = "Creating"
)

// NextOfQueue is what to do about a job that waits in a queue.
const NextOfQueue = "wait until the queue has room; the events of its Workload say what is short"

// Before returns why a Framework is not running that does not wait for its gang. Before returns false if the Framework
// waits for its gang, or for its tasks.
func Before(tree *view.Tree) (answers.Why, bool) {
	answer := answers.Why{Namespace: tree.Namespace, Name: tree.Name, Unknown: slices.Clone(tree.Unread)}
	say := func(reason answers.Reason, next, format string, args ...any) (answers.Why, bool) {
		answer.Reason, answer.Next, answer.Message = reason, next, fmt.Sprintf(format, args...)
		return answer, true
	}
	switch tree.State {
	case view.StateSucceeded, view.StateFailed, view.StateStopped:
		answer.Evidence = past(tree)
		next := "`history` lists its attempts; `retry` runs it again"
		if tree.State == view.StateSucceeded {
			next = ""
		}
		return say(answers.Reason(tree.State), next, "%s", ended(tree))
	case view.StateNotStarted:
		return say(ReasonNotStarted, "`start` starts it", "its executionType is Create")
	}
	if tree.Attempt == nil {
		return say(ReasonUnseen, "is lockstep-controller running, and does it serve this namespace?", "no lockstep-controller has seen it")
	}
	if c := condition(tree, frameworkv1.ConditionAdmitted, metav1.ConditionFalse); c != nil {
		if c.Reason == frameworkv1.ReasonNotAdmissible {
			return say(ReasonNotAdmissible, "change the Framework, or what the message names: until then it waits", "it can't be in its queue of Kueue: %s", c.Message)
		}
		return say(ReasonQueued, NextOfQueue, "Kueue holds it back (%s): %s", c.Reason, c.Message)
	}
	if c := condition(tree, frameworkv1.ConditionTasksBlocked, metav1.ConditionTrue); c != nil {
		return say(answers.Reason(c.Reason), blockedNext(c.Reason), "%s", strings.TrimPrefix(c.Message, c.Reason+": "))
	}
	switch tree.State {
	case view.StateRetrying:
		answer.Evidence = past(tree)
		return say(ReasonRetrying, "wait: nothing shortens the delay", "attempt %d is over; %s", tree.Attempt.ID, cmp.Or(tree.Waiting, "the next one is to begin"))
	case view.StateEnding:
		return say(ReasonEnding, "wait until its Pods have ended", "attempt %d ends, and its Pods are being deleted", tree.Attempt.ID)
	}
	return answer, false
}

// Tasks returns why a Framework without a gang is not running: what its tasks wait for.
func Tasks(tree *view.Tree, now time.Time) answers.Why {
	answer := answers.Why{Namespace: tree.Namespace, Name: tree.Name, Unknown: slices.Clone(tree.Unread)}
	type waiting struct {
		view.Tasks
		role  string
		count int
	}
	var all []*waiting
	for _, role := range tree.Attempt.Roles {
		for _, tasks := range role.Tasks {
			if tasks.Reason == "" || tasks.State != view.StatePreparing && tasks.State != view.StateCreating {
				continue
			}
			if len(answer.Tasks) < answers.MaxTasks {
				answer.Tasks = append(answer.Tasks, answers.Task{Pod: cmp.Or(tasks.PodName, tasks.Indexes), Role: role.Name, Reason: tasks.Reason, Message: tasks.Message})
			}
			at := slices.IndexFunc(all, func(w *waiting) bool { return w.Reason == tasks.Reason })
			if at < 0 {
				all = append(all, &waiting{Tasks: tasks, role: role.Name})
				at = len(all) - 1
			}
			all[at].count += tasks.Count
		}
	}
	if len(all) == 0 {
		missing, known := Missing(tree)
		switch {
		case tree.Running > 0:
			answer.Reason, answer.Message = ReasonRunning, fmt.Sprintf("it runs: %d of %d tasks", tree.Running, tree.Total)
			answer.Evidence = missing.Evidence
		case known && missing.Reason != ReasonCreating:
			return missing
		default:
			answer.Reason, answer.Message = ReasonCreating, fmt.Sprintf("its Pods are being created, since %s", max(0, now.Sub(tree.Attempt.Started)).Round(time.Second))
		}
		return answer
	}
	slices.SortStableFunc(all, func(a, b *waiting) int { return cmp.Compare(b.count, a.count) })
	top := all[0]
	answer.Reason, answer.Next = answers.Reason(top.Reason), waitingNext(top.Reason, top.Message)
	answer.Message = fmt.Sprintf("%d of %d tasks wait, as task %s does: %s", top.count, tree.Total, top.role+"/"+top.Indexes, cmp.Or(top.Message, top.Reason))
	for _, w := range all {
		answer.Evidence = append(answer.Evidence, text.Counted(w.count, "task")+": "+w.Reason)
	}
	if tree.Running > 0 {
		answer.Evidence = append(answer.Evidence, fmt.Sprintf("%s running", text.Counted(int(tree.Running), "task")))
	}
	return answer
}

// UnknownFields returns lines about fields of Pod templates that the API server drops when it creates Pods.
func UnknownFields(tree *view.Tree) []string {
	c := condition(tree, frameworkv1.ConditionUnknownFields, metav1.ConditionTrue)
	if c == nil {
		return nil
	}
	return []string{Dropped(c.Message)}
}

// Dropped returns the line about fields that the API server drops.
func Dropped(fields string) string {
	return "the API server drops fields that it does not know: " + fields
}

func condition(tree *view.Tree, kind string, status metav1.ConditionStatus) *metav1.Condition {
	for i := range tree.Conditions {
		if c := &tree.Conditions[i]; c.Type == kind && c.Status == status {
			return c
		}
	}
	return nil
}

// ended returns how a Framework has ended.
func ended(tree *view.Tree) string {
	message := "it has ended"
	if tree.Attempt == nil || tree.Attempt.End == nil {
		return message
	}
	end := tree.Attempt.End
	return fmt.Sprintf("%s with code %d: %s", message, end.Code, end.Says())
}

// past returns the attempts that are over, a line each.
func past(tree *view.Tree) []string {
	var lines []string
	for i := range tree.History {
		attempt := &tree.History[i]
		lines = append(lines, fmt.Sprintf("attempt %d: %s, code %d, %s; %s", attempt.ID, attempt.State, attempt.End.Code,
			attempt.End.Says(), attempt.Next))
	}
	return lines
}

// blockedNext returns what to do about a reason of the condition TasksBlocked.
func blockedNext(reason string) string {
	switch reason {
	case frameworkv1.ReasonQuotaExceeded:
		return "ask for less, end other work of the namespace, or have its ResourceQuota raised; the controller tries again by itself"
	case frameworkv1.ReasonPriorityClassNotFound:
		return "name an existing PriorityClass, or have this one created; the controller tries again by itself"
	case frameworkv1.ReasonUnknownFields:
		return "correct the fields that the message names: Pods are created then"
	case frameworkv1.ReasonNameTaken:
		return "delete the object of that name, if no one needs the object"
	case frameworkv1.ReasonWaiting:
		return "take the finalizer off the Pod, or, if its node is gone for good, delete the Pod by force: kubectl delete pod --force"
	default:
		return "change what the message names; the controller tries again by itself"
	}
}

// neverHelps is what kube-scheduler says of nodes that would be too small for a Pod even if they were empty.
const neverHelps = " Preemption is not helpful for scheduling"

// waitingNext returns the advice for a Pod that waits, by reason and message.
func waitingNext(reason, message string) string {
	switch {
	case reason == corev1.PodReasonUnschedulable && strings.Contains(message, neverHelps) && !strings.Contains(message, "No preemption victims found"):
		return "ask for less, or add nodes that are large enough and suit the Pods: no node is or does, even when it is empty"
	case reason == corev1.PodReasonUnschedulable:
		return "ask for less or add nodes, unless enough room is free when other work ends"
	case reason == corev1.PodReasonSchedulingGated:
		return "wait until the controller that has added the scheduling gate, such as Kueue, removes it"
	default:
		return cmp.Or(whatif.Hint(reason), "look at the events of the Pod")
	}
}
