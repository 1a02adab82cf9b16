// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package view

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

func TestTheTableSaysWhatAFrameworkWaitsFor(t *testing.T) {
	delay := int64(60)
	condition := func(kind string, status metav1.ConditionStatus, reason string) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Reason: reason}}
	}
	for want, status := range map[string]frameworkv1.FrameworkStatus{
		"":                    {State: frameworkv1.FrameworkCompleted, Conditions: condition(frameworkv1.ConditionGangScheduled, "False", "NotEnoughResources")},
		"next attempt in 50s": {State: frameworkv1.FrameworkAttemptCompleted, TransitionTime: metav1.NewTime(now.Add(-10 * time.Second)), RetryPolicyStatus: frameworkv1.RetryPolicyStatus{RetryDelaySec: &delay}},
		// The controller's clock is an hour ahead.
		"next attempt in 1m0s": {State: frameworkv1.FrameworkAttemptCompleted, TransitionTime: metav1.NewTime(now.Add(time.Hour)), RetryPolicyStatus: frameworkv1.RetryPolicyStatus{RetryDelaySec: &delay}},
		"Kueue: InQueue":       {Conditions: condition(frameworkv1.ConditionAdmitted, "False", "InQueue")},
		"QuotaExceeded":        {Conditions: condition(frameworkv1.ConditionTasksBlocked, "True", "QuotaExceeded")},
		"NotEnoughResources":   {Conditions: condition(frameworkv1.ConditionGangScheduled, "False", "NotEnoughResources"), Waiting: []frameworkv1.WaitingCount{{Reason: "Unschedulable", Tasks: 2}}},
		"ImagePullBackOff (3)": {Waiting: []frameworkv1.WaitingCount{{Reason: "ImagePullBackOff", Tasks: 3}}},
	} {
		if got := RowOfFramework(&frameworkv1.Framework{Status: &status}, now).Waiting; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
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
	end := End{Code: 7, Phrase: "ContainerUnrecognizedFailed", Trigger: "worker/3"}
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
		"The Framework is retried at most 3 times, but for transient failures, after which it always is, and permanent ones, after which it never is.",
		"All tasks are placed together, or none.",
		"worker: 1 failed task fails the attempt; each task is not retried.",
	}
	if diff := cmp.Diff(want, OfFramework(Objects{Framework: fw}, now).Policies); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
