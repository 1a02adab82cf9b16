// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// attemptsOf is a world with a Framework of one task that fails a number of times, each after it
// ran for a minute, and then is left running.
func attemptsOf(t *testing.T, fails, limit int) *world {
	t.Helper()
	f := framework(role("w", 1))
	f.Spec.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
	w := newWorld(t, f)
	w.options.HistoryLimit = limit
	for range fails {
		w.run()
		w.runPods()
		w.now = w.now.Add(time.Minute)
		w.setPhase("fw-w-0", corev1.PodFailed, 7)
		w.settles()
	}
	w.run()
	w.runPods()
	return w
}

// settles lets everything go that is to go.
func (w *world) settles() {
	for range 4 {
		w.run()
		w.allGone()
	}
}

// TestTheHistoryTellsOfEachAttempt: how it ended, which task ended it, and that another followed.
func TestTheHistoryTellsOfEachAttempt(t *testing.T) {
	w := attemptsOf(t, 2, 10)
	w.setPhase("fw-w-0", corev1.PodSucceeded, 0)
	w.settles()
	if w.written.State != frameworkv1.FrameworkCompleted {
		t.Fatalf("the Framework is %s", w.written.State)
	}
	type told struct {
		ID, Code   int32
		Role       string
		Ran        time.Duration
		Failures   int32
		Retried    bool
		Accounted  bool
		Tasks      frameworkv1.TaskCounts
		Attributes int
	}
	var got []told
	for _, record := range w.written.History {
		end := record.CompletionStatus
		got = append(got, told{
			ID: record.ID, Code: int32(end.Code), Role: end.Trigger.TaskRoleName,
			Ran:      record.CompletionTime.Sub(record.RunTime.Time),
			Failures: record.TaskAttempts.Failures, Retried: record.Retry != nil,
			Accounted: record.Retry != nil && record.Retry.Accountable, Tasks: record.Tasks,
		})
	}
	failed, succeeded := frameworkv1.TaskCounts{Total: 1, Failed: 1}, frameworkv1.TaskCounts{Total: 1, Succeeded: 1}
	want := []told{
		{ID: 0, Code: 7, Role: "w", Ran: time.Minute, Failures: 1, Retried: true, Accounted: true, Tasks: failed},
		{ID: 1, Code: 7, Role: "w", Ran: time.Minute, Failures: 1, Retried: true, Accounted: true, Tasks: failed},
		{ID: 2, Code: 0, Role: "w", Tasks: succeeded},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the history (-want +got):\n%s", diff)
	}
}

// TestTheHistoryHasTheLastAttempts, as many as the configuration says.
func TestTheHistoryHasTheLastAttempts(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int
		want  []int32
	}{
		"ten":  {10, []int32{0, 1, 2, 3}},
		"two":  {2, []int32{2, 3}},
		"none": {0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var ids []int32
			for _, record := range attemptsOf(t, 4, tc.limit).written.History {
				ids = append(ids, record.ID)
			}
			if !slices.Equal(ids, tc.want) {
				t.Errorf("the history has the attempts %v, want %v", ids, tc.want)
			}
		})
	}
}

// TestAStatusWithoutHistoryGoesOn: one of an older version, or that an older CRD has kept.
func TestAStatusWithoutHistoryGoesOn(t *testing.T) {
	w := attemptsOf(t, 3, 10)
	w.written = frameworkv1.ShareTasks(w.written)
	w.written.History = nil
	w.crash()
	w.setPhase("fw-w-0", corev1.PodFailed, 7)
	w.settles()
	if history := w.written.History; len(history) != 1 || history[0].ID != 3 || history[0].Retry == nil {
		t.Errorf("the history begins with %+v, want attempt 3, which is retried", history)
	}
}

// TestALongEndIsShortInTheHistory: nobody's texts make a status large.
func TestALongEndIsShortInTheHistory(t *testing.T) {
	long := strings.Repeat("<\x01\">", 1000)
	at := metav1.Now()
	d := &decision{next: &frameworkv1.FrameworkStatus{}}
	d.Options.HistoryLimit = 1
	d.next.AttemptStatus = frameworkv1.FrameworkAttemptStatus{
		ID: 2147483647, StartTime: at, RunTime: &at, CompletionTime: &at,
		CompletionStatus: &frameworkv1.FrameworkAttemptCompletionStatus{
			CompletionStatus: frameworkv1.CompletionStatus{Code: -2147483648, Phrase: long, Diagnostics: long,
				Disruption: frameworkv1.DisruptionPreempted,
				Type: frameworkv1.CompletionType{Name: "Succeeded", Attributes: slices.Repeat(
					[]frameworkv1.CompletionTypeAttribute{frameworkv1.AttributeTransient}, 100)}},
			Trigger: &frameworkv1.CompletionPolicyTriggerStatus{Message: long, TaskRoleName: long, TaskIndex: 9999},
		},
		TaskAttempts: frameworkv1.TaskAttemptCounts{Retries: 1 << 30, Failures: 1 << 30, Preemptions: 1 << 30,
			NodeLosses: 1 << 30, Evictions: 1 << 30, Deletions: 1 << 30},
	}
	d.recordAttempt()
	d.recordRetry(true, 1<<62)
	data, err := json.Marshal(d.next.History)
	if err != nil {
		t.Fatal(err)
	}
	const most = 1536 // as frameworkHistoryLimit promises
	if len(data) > most {
		t.Errorf("a record takes %d bytes, want at most %d", len(data), most)
	}
	if full := d.next.AttemptStatus.CompletionStatus; full.Diagnostics != long || full.Trigger.Message != long {
		t.Error("the status of the attempt itself is cut")
	}
}

// TestPreemptionsAndLostNodesAreNoFailures, nor evictions, nor what somebody deletes.
func TestPreemptionsAndLostNodesAreNoFailures(t *testing.T) {
	target := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
		}
	}
	told := func(reason string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			target("TerminationByKubelet")(pod)
			pod.Status.Reason = reason
		}
	}
	for name, tc := range map[string]struct {
		pod        func(*corev1.Pod)
		fails      bool
		disruption frameworkv1.Disruption
		want       frameworkv1.TaskAttemptCounts
	}{
		"preempted by the scheduler": {pod: target("PreemptionByScheduler"),
			disruption: "Preempted", want: frameworkv1.TaskAttemptCounts{Preemptions: 1}},
		"preempted by a kubelet": {pod: told("Preempting"), fails: true,
			disruption: "Preempted", want: frameworkv1.TaskAttemptCounts{Preemptions: 1}},
		"on a node that does not answer": {pod: target("DeletionByTaintManager"),
			disruption: "NodeLost", want: frameworkv1.TaskAttemptCounts{NodeLosses: 1}},
		"on a node that is gone": {pod: target("DeletionByPodGC"), fails: true,
			disruption: "NodeLost", want: frameworkv1.TaskAttemptCounts{NodeLosses: 1}},
		"on a node that shuts down": {pod: told("Terminated"), fails: true,
			disruption: "NodeLost", want: frameworkv1.TaskAttemptCounts{NodeLosses: 1}},
		"on a node that is short of memory": {pod: told("Evicted"), fails: true,
			disruption: "Evicted", want: frameworkv1.TaskAttemptCounts{Evictions: 1}},
		"drained": {pod: target("EvictionByEvictionAPI"),
			disruption: "Evicted", want: frameworkv1.TaskAttemptCounts{Evictions: 1}},
		"spared after all, and failed": {fails: true, want: frameworkv1.TaskAttemptCounts{Failures: 1}, pod: func(pod *corev1.Pod) {
			target("PreemptionByScheduler")(pod)
			pod.Status.Conditions[0].Status = corev1.ConditionFalse
		}},
		"deleted by somebody": {pod: func(*corev1.Pod) {}, want: frameworkv1.TaskAttemptCounts{Deletions: 1}},
		"failed":              {pod: func(*corev1.Pod) {}, fails: true, want: frameworkv1.TaskAttemptCounts{Failures: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, framework(role("w", 1)))
			w.run()
			w.runPods()
			tc.pod(w.pods["fw-w-0"])
			if tc.fails {
				w.setPhase("fw-w-0", corev1.PodFailed, 137)
			} else {
				w.deletePod("fw-w-0", 30)
			}
			w.settles()
			record := w.written.History[0]
			if record.CompletionStatus.Disruption != tc.disruption || record.TaskAttempts != tc.want {
				t.Errorf("the attempt was disrupted by %q, and has %+v, want %q and %+v",
					record.CompletionStatus.Disruption, record.TaskAttempts, tc.disruption, tc.want)
			}
		})
	}
}

// TestRetriesOfTasksAreCounted in the attempt that they belong to.
func TestRetriesOfTasksAreCounted(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.TaskRoles[0].Task.RetryPolicy.MaxRetryCount = 2
	f.Spec.TaskRoles[0].FrameworkAttemptCompletionPolicy.MinFailedTaskCount = ptr.To[int32](1)
	w := newWorld(t, f)
	w.run()
	w.runPods()
	for _, task := range []string{"w-0", "w-1", "w-0"} {
		w.now = w.now.Add(time.Minute) // Nothing ends quickly.
		w.retryTask(task)
	}
	want := frameworkv1.TaskAttemptCounts{Retries: 3, Failures: 3}
	if got := w.written.AttemptStatus.TaskAttempts; got != want {
		t.Errorf("the attempt has %+v, want %+v", got, want)
	}
}

// TestARetryIsRecordedOfItsOwnAttempt, where records are missing.
func TestARetryIsRecordedOfItsOwnAttempt(t *testing.T) {
	d := &decision{next: &frameworkv1.FrameworkStatus{History: []frameworkv1.AttemptRecord{{ID: 1}}}}
	d.next.AttemptStatus.ID = 3
	d.recordRetry(true, 0)
	if d.next.History[0].Retry != nil {
		t.Error("attempt 3 is retried, and attempt 1 is said to be")
	}
}
