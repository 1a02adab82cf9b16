// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

var now = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func TestStatesArePeoplesWords(t *testing.T) {
	ended := func(name frameworkv1.CompletionTypeName, code frameworkv1.CompletionCode) *frameworkv1.FrameworkAttemptCompletionStatus {
		return &frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: frameworkv1.CompletionStatus{Code: code, Type: frameworkv1.CompletionType{Name: name}}}
	}
	for want, fw := range map[string]frameworkv1.Framework{
		StateNotStarted: {Spec: frameworkv1.FrameworkSpec{ExecutionType: frameworkv1.ExecutionCreate}, Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCreationPending}},
		StateCreating:   {},
		StatePreparing:  {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptPreparing}},
		StateRunning:    {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning}},
		StateEnding:     {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptDeleting}},
		StateRetrying:   {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCompleted}},
		StateSucceeded:  {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, AttemptStatus: frameworkv1.FrameworkAttemptStatus{CompletionStatus: ended("Succeeded", 0)}}},
		StateFailed:     {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, AttemptStatus: frameworkv1.FrameworkAttemptStatus{CompletionStatus: ended("Failed", 1)}}},
		StateStopped:    {Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, AttemptStatus: frameworkv1.FrameworkAttemptStatus{CompletionStatus: ended("Failed", frameworkv1.CodeStopFrameworkRequested)}}},
		"OfTomorrow":    {Status: &frameworkv1.FrameworkStatus{State: "OfTomorrow"}},
	} {
		if got := FrameworkState(&fw); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

var update = flag.Bool("update", false, "write testdata/waiting.json")

// waits is a Framework in testdata/waiting.json, and what people are told of it. The Python package is held to the same file.
type waits struct {
	Is        string         `json:"is"`
	Framework map[string]any `json:"framework"`
	State     string         `json:"state"`
	Waiting   string         `json:"waiting"`
}

func TestTheTableSaysWhatAFrameworkWaitsFor(t *testing.T) {
	delay := func(seconds int64) frameworkv1.RetryPolicyStatus {
		return frameworkv1.RetryPolicyStatus{RetryDelaySec: &seconds}
	}
	condition := func(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
	}
	ended := func(name frameworkv1.CompletionTypeName, code frameworkv1.CompletionCode) frameworkv1.FrameworkAttemptStatus {
		return frameworkv1.FrameworkAttemptStatus{CompletionStatus: &frameworkv1.FrameworkAttemptCompletionStatus{
			CompletionStatus: frameworkv1.CompletionStatus{Code: code, Type: frameworkv1.CompletionType{Name: name}},
		}}
	}
	ago := metav1.NewTime(now.Add(-10 * time.Second))
	var all struct {
		Now        time.Time `json:"now"`
		Frameworks []waits   `json:"frameworks"`
	}
	all.Now = now
	for _, tc := range []struct {
		is, state, waiting string
		created            bool
		status             *frameworkv1.FrameworkStatus
	}{
		{is: "not seen by a controller", state: StateCreating, waiting: "lockstep-controller"},
		{is: "not started, not seen", created: true, state: StateNotStarted},
		{is: "not started", created: true, state: StateNotStarted, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCreationPending}},
		{is: "begun", state: StateCreating, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptCreationRequested}},
		{is: "running", state: StateRunning, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning}},
		{is: "ending", state: StateEnding, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptDeleting}},
		{is: "over, with a condition of before", state: StateFailed, status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkCompleted, AttemptStatus: ended("Failed", 1), Conditions: condition(frameworkv1.ConditionGangScheduled, "False", "NotEnoughResources"),
		}},
		{is: "succeeded", state: StateSucceeded, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, AttemptStatus: ended("Succeeded", 0)}},
		{is: "stopped", state: StateStopped, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, AttemptStatus: ended("Failed", frameworkv1.CodeStopFrameworkRequested)}},
		{is: "to be retried", state: StateRetrying, waiting: "next attempt in 50s", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptCompleted, TransitionTime: ago, RetryPolicyStatus: delay(60),
		}},
		{is: "to be retried in an hour", state: StateRetrying, waiting: "next attempt in 1h1m5s", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptCompleted, TransitionTime: ago, RetryPolicyStatus: delay(3675),
		}},
		{is: "to be retried now", state: StateRetrying, waiting: "next attempt in 0s", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptCompleted, TransitionTime: ago, RetryPolicyStatus: delay(3),
		}},
		{is: "to be retried, by a clock that is ahead", state: StateRetrying, waiting: "next attempt in 1m0s", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptCompleted, TransitionTime: metav1.NewTime(now.Add(time.Hour)), RetryPolicyStatus: delay(60),
		}},
		{is: "retried, and running", state: StateRunning, status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkAttemptRunning, TransitionTime: ago, RetryPolicyStatus: delay(60)}},
		{is: "in a queue", state: StatePreparing, waiting: "Kueue: InQueue", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptPreparing, Conditions: condition(frameworkv1.ConditionAdmitted, "False", "InQueue"),
		}},
		{is: "refused Pods", state: StatePreparing, waiting: "QuotaExceeded", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptPreparing, Conditions: condition(frameworkv1.ConditionTasksBlocked, "True", "QuotaExceeded"),
		}},
		{is: "a gang without room", state: StatePreparing, waiting: "NotEnoughResources", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptPreparing, Conditions: condition(frameworkv1.ConditionGangScheduled, "False", "NotEnoughResources"),
			Waiting: []frameworkv1.WaitingCount{{Reason: "Unschedulable", Tasks: 2}},
		}},
		{is: "a gang that is placed, without an image", state: StatePreparing, waiting: "ImagePullBackOff (3)", status: &frameworkv1.FrameworkStatus{
			State: frameworkv1.FrameworkAttemptPreparing, Conditions: condition(frameworkv1.ConditionGangScheduled, "True", "Scheduled"),
			Waiting: []frameworkv1.WaitingCount{{Reason: "ImagePullBackOff", Tasks: 3}, {Reason: "Unschedulable", Tasks: 1}},
		}},
	} {
		fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Name: "train"}, Status: tc.status}
		fw.Spec.ExecutionType = frameworkv1.ExecutionStart
		if tc.created {
			fw.Spec.ExecutionType = frameworkv1.ExecutionCreate
		}
		if got := RowOfFramework(fw, now); got.State != tc.state || got.Waiting != tc.waiting {
			t.Errorf("%s: got %q and %q, want %q and %q", tc.is, got.State, got.Waiting, tc.state, tc.waiting)
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fw)
		if err != nil {
			t.Fatal(err)
		}
		all.Frameworks = append(all.Frameworks, waits{tc.is, object, tc.state, tc.waiting})
	}
	got, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/waiting.json"
	if *update {
		if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Errorf("%s is of before (-want +got; -update writes it)\n%s", file, diff)
	}
}

func TestJobsOfOtherKindsAreRowsToo(t *testing.T) {
	job := &batchv1alpha1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b"}}
	job.Spec.Tasks = []batchv1alpha1.TaskSpec{{Replicas: 2}, {Replicas: 3}}
	job.Status.State.Phase, job.Status.Running, job.Status.RetryCount = "Running", 4, 1
	want := Row{Kind: "Job.batch.volcano.sh", Namespace: "a", Name: "b", State: "Running", Attempt: 1, Running: 4, Total: 5, Seen: true}
	if diff := cmp.Diff(want, RowOfVolcanoJob(job)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}

	object := map[string]any{
		"metadata": map[string]any{"namespace": "a", "name": "b"},
		"spec":     map[string]any{"pytorchReplicaSpecs": map[string]any{"Master": map[string]any{}, "Worker": map[string]any{"replicas": int64(3)}}, "runPolicy": map[string]any{}},
		"status": map[string]any{
			"conditions":      []any{map[string]any{"type": "Created", "status": "True"}, map[string]any{"type": "Running", "status": "True"}},
			"replicaStatuses": map[string]any{"Worker": map[string]any{"active": int64(2)}},
		},
	}
	row, err := RowOfTrainingJob("PyTorchJob", object)
	want = Row{Kind: "PyTorchJob", Namespace: "a", Name: "b", State: "Running", Attempt: -1, Running: 2, Total: 4, Seen: true}
	if diff := cmp.Diff(want, row); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}

	object["status"] = "nonsense"
	if _, err := RowOfTrainingJob("PyTorchJob", object); err == nil {
		t.Error("an object that is no job is shown as one")
	}
}

func TestHistorySaysWhatEndedEachAttemptAndWhatFollowed(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		t := metav1.NewTime(now.Add(time.Duration(minutes) * time.Minute))
		return &t
	}
	failed := frameworkv1.FrameworkAttemptCompletionStatus{
		CompletionStatus: frameworkv1.CompletionStatus{Code: 7, Phrase: "ContainerUnrecognizedFailed", Type: frameworkv1.CompletionType{Name: "Failed"}},
		Trigger:          &frameworkv1.CompletionPolicyTriggerStatus{TaskRoleName: "worker", TaskIndex: 3},
	}
	fw := &frameworkv1.Framework{Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted, History: []frameworkv1.AttemptRecord{
		{ID: 0, StartTime: *at(0), RunTime: at(1), CompletionTime: at(5), CompletionStatus: failed, Retry: &frameworkv1.AttemptRetry{Accountable: true, DelaySec: 4}},
		{ID: 1, StartTime: *at(6), CompletionTime: at(7), CompletionStatus: failed},
	}}}
	got := OfFramework(Objects{Framework: fw}, now).History
	end := End{Code: 7, Phrase: "Error", Trigger: "worker/3"}
	want := []PastAttempt{
		{ID: 0, Started: at(0).Time, Ran: at(1).Time, Ended: at(5).Time, State: StateFailed, End: end, Next: "retried after 4s, counts"},
		{ID: 1, Started: at(6).Time, Ended: at(7).Time, State: StateFailed, End: end, Next: "none"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestOfManyEventsTheLastAreShown(t *testing.T) {
	var events []corev1.Event
	for i := range 100 {
		events = append(events, corev1.Event{LastTimestamp: metav1.NewTime(now.Add(-time.Duration(i) * time.Minute)), Reason: "Tick"})
	}
	got := OfFramework(Objects{Framework: &frameworkv1.Framework{}, Events: events}, now).Events
	if len(got) != MaxEvents || !got[MaxEvents-1].Last.Equal(now) {
		t.Errorf("%d events, the last of %s", len(got), got[len(got)-1].Last)
	}
}

func TestPodsOfAnEarlierFrameworkOfTheNameDontCount(t *testing.T) {
	fw := &frameworkv1.Framework{ObjectMeta: metav1.ObjectMeta{Namespace: "a", UID: "new"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Annotations: map[string]string{frameworkv1.KeyFrameworkUID: "old"}}}
	if IsPodOf(fw, pod) {
		t.Error("it does")
	}
}

func TestPoliciesAreSaidInWords(t *testing.T) {
	fw := &frameworkv1.Framework{}
	fw.Spec.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: true, MaxRetryCount: 3}
	fw.Spec.Gang = &frameworkv1.GangSpec{}
	fw.Spec.TaskRoles = []frameworkv1.TaskRoleSpec{{Name: "worker"}}
	want := []string{
		"The Framework is retried at most 3 times; after a transient failure always, after a permanent one never.",
		"All tasks are placed together, or none.",
		"worker: 1 failed task fails the attempt; each task is not retried.",
	}
	if diff := cmp.Diff(want, OfFramework(Objects{Framework: fw}, now).Policies); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAFailureIsSaidInWords, and not in the JSON that the status has for programs, even where that was cut.
func TestAFailureIsSaidInWords(t *testing.T) {
	for want, end := range map[string]End{
		"worker/0 exited with 1: CUDA out of memory": {Code: 1, Phrase: "ContainerUnrecognizedFailed", Trigger: "worker/0",
			Diagnostics: `Pod failed: PodPattern unmatched: {"containers":[{"name":"main","reason":"Error","message":"CUDA out of memory\n","code":1}]}`},
		"worker/0 exited with 1: CUDA out of mem": {Code: 1, Phrase: "ContainerUnrecognizedFailed", Trigger: "worker/0",
			Diagnostics: `Pod failed: PodPattern unmatched: {"containers":[{"name":"main","code":1,"message":"CUDA out of mem…`},
		"exited with 137 (OOMKilled)": {Code: 137, Phrase: "ContainerOOMKilled",
			Diagnostics: `Pod failed: PodPattern matched: {"containers":[{"reason":"OOMKilled","code":137}]}`},
		"ps/2 exited with 3, its container agent": {Code: 3, Phrase: "ContainerUnrecognizedFailed", Trigger: "ps/2",
			Diagnostics: `Pod failed: PodPattern unmatched: {"containers":[{"name":"main","code":0},{"name":"agent","code":3}]}`},
		"worker/1: PodEvicted: Evicted: The node was low on memory": {Code: -1000, Phrase: "PodEvicted", Trigger: "worker/1",
			Diagnostics: `Pod failed: PodPattern matched: {"reason":"Evicted","message":"The node was low on memory"}`},
		"worker/1: Preempted: The Pod is being deleted from outside": {Code: -101, Phrase: "PodExternalDeleted", Disruption: "Preempted", Trigger: "worker/1",
			Diagnostics: "The Pod is being deleted from outside"},
		"worker/1: NodeLost: The Pod was on a node that is gone": {Code: -101, Phrase: "PodExternalDeleted", Disruption: "NodeLost", Trigger: "worker/1",
			Diagnostics: `The Pod was on a node that is gone: PodPattern unmatched: {"containers":[{"name":"main","code":137}]}`},
		"worker/1: PodExternalDeleted": {Code: -101, Phrase: "PodExternalDeleted", Trigger: "worker/1"},
	} {
		status := frameworkv1.FrameworkAttemptCompletionStatus{CompletionStatus: frameworkv1.CompletionStatus{
			Code: end.Code, Phrase: end.Phrase, Disruption: frameworkv1.Disruption(end.Disruption), Diagnostics: end.Diagnostics}}
		if role, index, found := strings.Cut(end.Trigger, "/"); found {
			n, _ := strconv.Atoi(index)
			status.Trigger = &frameworkv1.CompletionPolicyTriggerStatus{TaskRoleName: role, TaskIndex: int32(n)}
		}
		if got := endOfAttempt(&status).Says(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestAFailedJobSaysWhyInItsRow, and one that waits for what.
func TestAFailedJobSaysWhyInItsRow(t *testing.T) {
	failed := &frameworkv1.Framework{Status: &frameworkv1.FrameworkStatus{State: frameworkv1.FrameworkCompleted}}
	failed.Status.AttemptStatus.CompletionStatus = &frameworkv1.FrameworkAttemptCompletionStatus{
		CompletionStatus: frameworkv1.CompletionStatus{Code: 1, Type: frameworkv1.CompletionType{Name: frameworkv1.CompletionTypeFailed},
			Diagnostics: `Pod failed: PodPattern unmatched: {"containers":[{"name":"main","code":1}]}`},
		Trigger: &frameworkv1.CompletionPolicyTriggerStatus{TaskRoleName: "worker"},
	}
	if row := RowOfFramework(failed, now); row.Why() != "worker/0 exited with 1" {
		t.Errorf("it says %q", row.Why())
	}
	if row := (Row{State: "Failed", Message: "TFJob a/tf has failed"}); row.Why() != "TFJob a/tf has failed" {
		t.Errorf("a TFJob says %q", row.Why())
	}
	if row := (Row{State: StatePreparing, Waiting: "NotEnoughResources"}); row.Why() != "NotEnoughResources" {
		t.Errorf("one that waits says %q", row.Why())
	}
	if n, what := (&Row{State: StateSucceeded, Succeeded: 4, Total: 4}).Progress(); n != 4 || what != "succeeded" {
		t.Errorf("%d %s", n, what)
	}
}

// TestATaskThatSucceededIsNotRetrying in the moment before the controller has decided what follows.
func TestATaskThatSucceededIsNotRetrying(t *testing.T) {
	succeeded := frameworkv1.CompletionStatus{Type: frameworkv1.CompletionType{Name: frameworkv1.CompletionTypeSucceeded}}
	task := &frameworkv1.TaskStatus{State: frameworkv1.TaskAttemptCompleted}
	task.AttemptStatus.CompletionStatus = &frameworkv1.TaskAttemptCompletionStatus{CompletionStatus: succeeded}
	if got := TaskState(task); got != StateSucceeded {
		t.Errorf("it is %s", got)
	}
	task.RetryPolicyStatus.RetryDelaySec = new(int64(5))
	if got := TaskState(task); got != StateRetrying {
		t.Errorf("one that is always run again is %s", got)
	}
}

func TestRowsAreSorted(t *testing.T) {
	all := []Row{
		{Name: "a", State: StateSucceeded, Created: now.Add(-time.Hour)}, {Name: "b", State: StateRunning, Running: 2, Created: now.Add(-time.Minute)},
		{Name: "c", State: StateFailed, Created: now}, {Name: "d", State: StatePreparing, Created: now.Add(-2 * time.Hour)},
	}
	for by, want := range map[string]string{"": "abcd", "name": "abcd", "age": "cbad", "state": "cdba", "running": "bacd"} {
		rows, got := slices.Clone(all), ""
		if !Sort(rows, by) {
			t.Errorf("%q is no order", by)
		}
		for _, row := range rows {
			got += row.Name
		}
		if got != want {
			t.Errorf("by %q: %s, want %s", by, got, want)
		}
	}
	if Sort(nil, "colour") {
		t.Error("there is an order by colour")
	}
}
