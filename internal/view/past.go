// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/text"
)

// PastAttempt is an attempt that is over.
type PastAttempt struct {
	ID int32
	// Started and Ended are when the attempt began and ended. Ran is when its first task began to run; zero if none
	// did.
	Started, Ran, Ended time.Time
	// State is Succeeded, Failed or Stopped.
	State string
	End   End
	// Counts distinguish failures from preemptions, lost nodes, evictions and deletions.
	Counts frameworkv1.TaskAttemptCounts
	// Next says in words what followed.
	Next string
}

// CountsInWords says how often tasks of an attempt failed, were lost, and were run again; "" if never.
func CountsInWords(c frameworkv1.TaskAttemptCounts) string {
	var said []string
	for _, count := range []struct {
		n         int32
		one, many string
	}{
		{c.Failures, "failed", "failed"}, {c.Preemptions, "preempted", "preempted"}, {c.NodeLosses, "lost with its node", "lost with their nodes"},
		{c.Evictions, "evicted", "evicted"}, {c.Deletions, "deleted", "deleted"}, {c.Retries, "retry", "retries"},
	} {
		if count.n > 0 {
			said = append(said, fmt.Sprintf("%d %s", count.n, text.Form(int(count.n), count.one, count.many)))
		}
	}
	return strings.Join(said, ", ")
}

// history returns the attempts of status.history.
func history(status *frameworkv1.FrameworkStatus) []PastAttempt {
	var past []PastAttempt
	for i := range status.History {
		record := &status.History[i]
		end := &record.CompletionStatus
		attempt := PastAttempt{
			ID: record.ID, Started: record.StartTime.Time, State: ended(&end.CompletionStatus), Counts: record.TaskAttempts,
			End: *endOfAttempt(end),
		}
		if record.RunTime != nil {
			attempt.Ran = record.RunTime.Time
		}
		if record.CompletionTime != nil {
			attempt.Ended = record.CompletionTime.Time
		}
		switch {
		case record.Retry == nil && status.State != frameworkv1.FrameworkCompleted:
			attempt.Next = "to be decided"
		case record.Retry == nil:
			attempt.Next = "none"
		case record.Retry.Accountable:
			attempt.Next = fmt.Sprintf("retried after %ds, counts", record.Retry.DelaySec)
		default:
			attempt.Next = fmt.Sprintf("retried after %ds, does not count", record.Retry.DelaySec)
		}
		past = append(past, attempt)
	}
	return past
}

// MaxEvents is how many events a tree has at most.
const MaxEvents = 20

// Event is an event of the Framework or its PodGroup.
type Event struct {
	// Last is when the event last occurred.
	Last time.Time
	// Count is how often, at least 1.
	Count int32
	// Warning is false for what is normal.
	Warning bool
	// About is the object: KIND/NAME.
	About           string
	Reason, Message string
}

// LastEvents returns the last MaxEvents, the oldest first.
func LastEvents(events []corev1.Event) []Event {
	told := make([]Event, 0, len(events))
	for i := range events {
		e := &events[i]
		event := Event{
			Last: e.LastTimestamp.Time, Count: max(1, e.Count), Warning: e.Type == corev1.EventTypeWarning,
			About: e.InvolvedObject.Kind + "/" + e.InvolvedObject.Name, Reason: e.Reason, Message: InWords(e.Message),
		}
		if e.Series != nil {
			event.Last, event.Count = e.Series.LastObservedTime.Time, max(1, e.Series.Count)
		}
		if event.Last.IsZero() {
			event.Last = cmp.Or(e.EventTime.Time, e.CreationTimestamp.Time)
		}
		told = append(told, event)
	}
	slices.SortStableFunc(told, func(a, b Event) int { return a.Last.Compare(b.Last) })
	return told[max(0, len(told)-MaxEvents):]
}
