// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/times"
)

// MaxTaskRows is how many rows the tasks of a role have at most.
const MaxTaskRows = 20

// Tasks is a row of a role: one task, or several that are alike.
type Tasks struct {
	// Indexes are those of the tasks, such as 0-4,7: at most 60 characters.
	Indexes string
	// Count is how many tasks the row stands for, at least 1.
	Count int
	// State is the state as a word. It is empty for the last row if that row holds different kinds of tasks, because
	// there are more kinds than rows.
	State string
	// Node is where the task runs or ran; for a row of several tasks, only if all are on the same node. Nodes is the
	// number of nodes.
	Node  string
	Nodes int
	// Code is the completion code of the task or, if the task has not ended, of its last attempt. Nil if neither
	// exists.
	Code *frameworkv1.CompletionCode
	// Reason is one word for why the task is in this state: what its Pod waits for, or how its Pod ended.
	Reason string
	// Message is a sentence about the first task of the row, from its Pod.
	Message string
	// Since is when the first task of the row came into the state.
	Since time.Time
	// Started, Ran and Ended are about the last attempts of the row's tasks: the first start, the first time that a
	// task began to run, and the last end. Zero if there is none. Ended is zero unless all tasks have ended.
	Started, Ran, Ended time.Time
	// Until is when the first of the row's retries is due; zero if no task waits for a retry, or the time is not
	// decided yet.
	Until time.Time
	// Retries is how often the task was run again; of several, all together.
	Retries int32
	// PodName is the Pod of the task. Empty in rows of several.
	PodName string
}

// task is a task before rows are made.
type task struct {
	index   int32
	state   string
	node    string
	code    *frameworkv1.CompletionCode
	reason  string
	message string
	since   time.Time
	retries int32
	pod     string
	// started, ran and ended are the times of the last attempt; zero for what has not happened.
	started, ran, ended time.Time
	// until is when the task runs again after the delay.
	until time.Time
}

func taskOf(s *frameworkv1.TaskStatus, pods map[string]*corev1.Pod) task {
	t := task{index: s.Index, state: TaskState(s), since: s.TransitionTime.Time, retries: s.RetryPolicyStatus.TotalRetriedCount, pod: s.AttemptStatus.PodName}
	t.started = s.AttemptStatus.StartTime.Time
	if at := s.AttemptStatus.RunTime; at != nil {
		t.ran = at.Time
	}
	if at := s.AttemptStatus.CompletionTime; at != nil {
		t.ended = at.Time
	}
	if delay := s.RetryPolicyStatus.RetryDelaySec; delay != nil && t.state == StateRetrying {
		t.until = s.TransitionTime.Add(time.Duration(*delay) * time.Second)
	}
	if s.AttemptStatus.PodNodeName != nil {
		t.node = *s.AttemptStatus.PodNodeName
	}
	if waiting := s.AttemptStatus.Waiting; waiting != nil {
		t.reason, t.since = waiting.Reason, waiting.Since.Time
	}
	if end := s.AttemptStatus.CompletionStatus; end != nil {
		ended := endOf(&end.CompletionStatus)
		t.code, t.reason, t.message = &end.Code, ended.Why(), ended.Diagnostics
	}
	if s.AttemptStatus.PodUID == nil {
		return t
	}
	// The Pod knows sooner than the status, which waits for other changes.
	pod := pods[string(*s.AttemptStatus.PodUID)]
	if pod == nil || t.code != nil {
		return t
	}
	t.node = cmp.Or(t.node, pod.Spec.NodeName)
	if t.state == StatePreparing {
		if reason, message := WaitingOf(pod); reason != "" {
			t.reason, t.message = reason, message
		}
	}
	return t
}

// WaitingOf returns what keeps a Pod from running, as a word and a sentence. Both are empty if that is unknown.
func WaitingOf(pod *corev1.Pod) (reason, message string) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return condition.Reason, condition.Message
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if waiting := status.State.Waiting; waiting != nil {
				return waiting.Reason, waiting.Message
			}
		}
	}
	return "", ""
}

// rows returns one row per task if there are few, otherwise one row per group of equal tasks. If there are more than
// MaxTaskRows groups, the smallest groups share the last row.
func rows(tasks []task) []Tasks {
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.index, b.index) })
	var kinds [][]task
	if len(tasks) <= MaxTaskRows {
		for i := range tasks {
			kinds = append(kinds, tasks[i:i+1])
		}
	} else {
		kinds = alike(tasks)
	}
	var rest []task
	if len(kinds) > MaxTaskRows {
		// The most frequent state is shown, and the rest is counted.
		slices.SortStableFunc(kinds, func(a, b []task) int { return cmp.Compare(len(b), len(a)) })
		for _, kind := range kinds[MaxTaskRows-1:] {
			rest = append(rest, kind...)
		}
		kinds = kinds[:MaxTaskRows-1]
		slices.SortFunc(kinds, func(a, b []task) int { return cmp.Compare(a[0].index, b[0].index) })
		slices.SortFunc(rest, func(a, b task) int { return cmp.Compare(a.index, b.index) })
	}
	var all []Tasks
	for _, kind := range kinds {
		all = append(all, row(kind))
	}
	if rest != nil {
		row := row(rest)
		row.State, row.Code, row.Reason, row.Message = "", nil, "", ""
		all = append(all, row)
	}
	return all
}

// alike groups the tasks by state, reason and code. The groups are in the order of their first indexes.
func alike(tasks []task) [][]task {
	type kind struct {
		state, reason string
		coded         bool
		code          frameworkv1.CompletionCode
	}
	at := map[kind]int{}
	var kinds [][]task
	for _, t := range tasks {
		k := kind{state: t.state, reason: t.reason}
		if t.code != nil {
			k.coded, k.code = true, *t.code
		}
		i, known := at[k]
		if !known {
			i = len(kinds)
			at[k] = i
			kinds = append(kinds, nil)
		}
		kinds[i] = append(kinds[i], t)
	}
	return kinds
}

// row returns the row of at least one task.
func row(tasks []task) Tasks {
	first := tasks[0]
	r := Tasks{Indexes: indexes(tasks), Count: len(tasks), State: first.state, Code: first.code, Reason: first.reason, Message: first.message, Since: first.since}
	nodes, live := map[string]bool{}, false
	for _, t := range tasks {
		if t.node != "" {
			nodes[t.node] = true
		}
		if t.since.Before(r.Since) {
			r.Since = t.since
		}
		r.Retries += t.retries
		r.Until = times.Sooner(r.Until, t.until)
		r.Started, r.Ran = times.Sooner(r.Started, t.started), times.Sooner(r.Ran, t.ran)
		if t.ended.IsZero() {
			live = true
		}
		r.Ended = times.Later(r.Ended, t.ended)
	}
	if live {
		r.Ended = time.Time{}
	}
	r.Nodes = len(nodes)
	if len(nodes) == 1 {
		for node := range nodes {
			r.Node = node
		}
	}
	if len(tasks) == 1 {
		r.PodName = first.pod
	}
	return r
}

// maxIndexes is the most characters of Tasks.Indexes.
const maxIndexes = 60

// indexes are those of tasks, which are in order, as ranges.
func indexes(tasks []task) string {
	var text strings.Builder
	for i := 0; i < len(tasks); {
		last := i
		for last+1 < len(tasks) && tasks[last+1].index == tasks[last].index+1 {
			last++
		}
		part := strconv.Itoa(int(tasks[i].index))
		if last > i {
			part += "-" + strconv.Itoa(int(tasks[last].index))
		}
		if text.Len() > 0 {
			part = "," + part
		}
		if text.Len()+len(part) > maxIndexes-len(",…") {
			return text.String() + ",…"
		}
		text.WriteString(part)
		i = last + 1
	}
	return text.String()
}
