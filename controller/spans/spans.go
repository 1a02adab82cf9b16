// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package spans

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// MaxTasks is of how many tasks an attempt has spans.
const MaxTasks = 100

// TraceID is that of all spans of a Framework.
type TraceID [16]byte

// ID identifies a span. The Framework's span has no parent; its Parent is zero.
type ID [8]byte

// Span is a time in the life of a Framework that is over.
type Span struct {
	Trace      TraceID
	ID, Parent ID
	Name       string
	Start, End time.Time
	// Failed says that it ended in a failure.
	Failed bool
	// Texts and Numbers are what is known of it.
	Texts   map[string]string
	Numbers map[string]int64
}

// TraceOf returns the trace of a Framework: its UID without the hyphens, so that users can search for the trace.
func TraceOf(framework types.UID) TraceID {
	var id TraceID
	if data, err := hex.DecodeString(strings.ReplaceAll(string(framework), "-", "")); err == nil && len(data) == len(id) {
		return TraceID(data)
	}
	sum := sha256.Sum256([]byte(framework))
	return TraceID(sum[:len(id)])
}

// idOf returns the id of the span of a Framework that has a path.
func idOf(framework types.UID, path string) ID {
	sum := sha256.Sum256([]byte(string(framework) + "/" + path))
	return ID(sum[:len(ID{})])
}

// Ended returns the spans of what ended between two statuses. Before may be nil.
func Ended(framework *frameworkv1.Framework, before, after *frameworkv1.FrameworkStatus) []Span {
	if before == nil {
		before = &frameworkv1.FrameworkStatus{}
	}
	var spans []Span
	sameAttempt := before.AttemptStatus.ID == after.AttemptStatus.ID
	if isOver(after) && !(sameAttempt && isOver(before)) {
		spans = attempt(framework, after)
	}
	if after.State == frameworkv1.FrameworkCompleted && before.State != after.State {
		spans = append(spans, whole(framework, after))
	}
	return spans
}

// isOver reports whether the attempt of a status is over.
func isOver(status *frameworkv1.FrameworkStatus) bool {
	return status.State == frameworkv1.FrameworkAttemptCompleted || status.State == frameworkv1.FrameworkCompleted
}

// whole returns the span of the Framework.
func whole(framework *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) Span {
	span := newSpan(framework, "", "Framework", framework.CreationTimestamp.Time, status.CompletionTime, status.TransitionTime)
	span.Parent = ID{}
	span.Numbers["lockstep.attempts"] = int64(status.AttemptStatus.ID) + 1
	if completion := status.AttemptStatus.CompletionStatus; completion != nil {
		span.ends(&completion.CompletionStatus)
	}
	return span
}

// attempt returns the spans of an attempt that is over: the attempt's own span, and the spans of its phases and tasks.
func attempt(framework *frameworkv1.Framework, status *frameworkv1.FrameworkStatus) []Span {
	is := &status.AttemptStatus
	name := fmt.Sprint("Attempt ", is.ID)
	own := newSpan(framework, "", name, is.StartTime.Time, is.CompletionTime, status.TransitionTime)
	own.Numbers["lockstep.attempt"] = int64(is.ID)
	if is.CompletionStatus != nil {
		own.ends(&is.CompletionStatus.CompletionStatus)
	}
	end := metav1.NewTime(own.End)
	waiting := newSpan(framework, name, "Waiting", own.Start, is.RunTime, end)
	spans := []Span{waiting}
	if is.RunTime != nil {
		spans = append(spans, newSpan(framework, name, "Running", is.RunTime.Time, &end, end))
	}
	tasks := tasksOf(is)
	own.Numbers["lockstep.tasks"] = int64(len(tasks))
	for _, t := range tasks[:min(len(tasks), MaxTasks)] {
		spans = append(spans, t.span(framework, name, end))
	}
	return append(spans, own)
}

// task is a task and its role.
type task struct {
	role   string
	status *frameworkv1.TaskStatus
}

// tasksOf returns the tasks of an attempt, those first that have failed by themselves.
func tasksOf(attempt *frameworkv1.FrameworkAttemptStatus) []task {
	var tasks []task
	for _, role := range attempt.TaskRoleStatuses {
		for _, status := range role.TaskStatuses {
			tasks = append(tasks, task{role.Name, status})
		}
	}
	slices.SortStableFunc(tasks, func(a, b task) int { return cmp.Compare(a.rank(), b.rank()) })
	return tasks
}

func (t task) rank() int {
	switch completion := t.status.AttemptStatus.CompletionStatus; {
	case completion == nil || completion.Code == frameworkv1.CodeFrameworkAttemptCompletion:
		return 1
	case failed(&completion.CompletionStatus):
		return 0
	default:
		return 1
	}
}

func (t task) span(framework *frameworkv1.Framework, parent string, end metav1.Time) Span {
	is := &t.status.AttemptStatus
	span := newSpan(framework, parent, fmt.Sprintf("Task %s[%d]", t.role, t.status.Index), t.status.StartTime.Time, t.status.CompletionTime, end)
	span.Texts["lockstep.role"] = t.role
	span.Texts["k8s.pod.name"] = is.PodName
	if is.PodNodeName != nil {
		span.Texts["k8s.node.name"] = *is.PodNodeName
	}
	span.Numbers["lockstep.task"] = int64(t.status.Index)
	span.Numbers["lockstep.attempts"] = int64(is.ID) + 1
	if is.CompletionStatus != nil {
		span.ends(&is.CompletionStatus.CompletionStatus)
	}
	return span
}

// newSpan returns a span with a name below a parent. If the end is unknown, `last` is used.
func newSpan(framework *frameworkv1.Framework, parent, name string, start time.Time, end *metav1.Time, last metav1.Time) Span {
	if end == nil {
		end = &last
	}
	if start.IsZero() {
		start = framework.CreationTimestamp.Time
	}
	path := name
	above := "Framework"
	if parent != "" {
		path, above = parent+"/"+name, parent
	}
	span := Span{
		Trace: TraceOf(framework.UID), ID: idOf(framework.UID, path), Parent: idOf(framework.UID, above), Name: name,
		Start: start, End: end.Time,
		Texts:   map[string]string{"k8s.namespace.name": framework.Namespace, "lockstep.framework": framework.Name},
		Numbers: map[string]int64{},
	}
	if span.End.Before(span.Start) { // The first is the API server's clock, the others are the controller's.
		span.End = span.Start
	}
	return span
}

// ends describes how a span ended, without the diagnostics.
func (s *Span) ends(completion *frameworkv1.CompletionStatus) {
	s.Failed = failed(completion)
	s.Numbers["lockstep.code"] = int64(completion.Code)
	s.Texts["lockstep.phrase"] = string(completion.Phrase)
}

func failed(completion *frameworkv1.CompletionStatus) bool {
	return completion.Type.Name != frameworkv1.CompletionTypeSucceeded
}
