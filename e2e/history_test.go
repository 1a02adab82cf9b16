//go:build e2e

// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/localenv/jobs"
)

// TestTheStatusTellsOfAttemptsWhosePodsAreGone: the first one failed, the second one was evicted
// from its node, the third one succeeds.
func TestTheStatusTellsOfAttemptsWhosePodsAreGone(t *testing.T) {
	t.Parallel()
	fw := jobs.MakeFramework("history").Retry(false, 2).
		Role("worker", 1, jobs.RunFor(time.Second, 7).InFirstAttempts(1)).
		Role("steady", 1, jobs.RunForever()).Obj()
	namespace := submit(t, fw)
	second := cluster.WaitFramework(t, namespace, fw.Name, "run the steady task of its second attempt", func(fw *frameworkv1.Framework) bool {
		steady := task(fw, "steady", 0)
		return fw.Status != nil && fw.Status.AttemptStatus.ID == 1 && steady != nil && steady.State == frameworkv1.TaskAttemptRunning
	})
	if err := cluster.Kube.CoreV1().Pods(namespace).EvictV1(t.Context(), &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Name: task(second, "steady", 0).AttemptStatus.PodName, Namespace: namespace},
	}); err != nil {
		t.Fatal(err)
	}
	cluster.WaitFramework(t, namespace, fw.Name, "run its third attempt", func(fw *frameworkv1.Framework) bool {
		return fw.Status.AttemptStatus.ID == 2 && fw.Status.State == frameworkv1.FrameworkAttemptRunning
	})
	setExecutionType(t, namespace, fw.Name, frameworkv1.ExecutionStop)
	done := cluster.WaitFrameworkState(t, namespace, fw.Name, frameworkv1.FrameworkCompleted)
	type told struct {
		Code       frameworkv1.CompletionCode
		Disruption frameworkv1.Disruption
		Role       string
		Failures   int32
		Evictions  int32
		Retried    bool
	}
	var got []told
	for _, record := range done.Status.History {
		end := record.CompletionStatus
		one := told{Code: end.Code, Disruption: end.Disruption, Failures: record.TaskAttempts.Failures,
			Evictions: record.TaskAttempts.Evictions, Retried: record.Retry != nil}
		if end.Trigger != nil {
			one.Role = end.Trigger.TaskRoleName
		}
		got = append(got, one)
	}
	want := []told{
		{Code: 7, Role: "worker", Failures: 1, Retried: true},
		{Code: frameworkv1.CodePodExternalDeleted, Disruption: frameworkv1.DisruptionEvicted, Role: "steady", Evictions: 1, Retried: true},
		{Code: frameworkv1.CodeStopFrameworkRequested},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the history (-want,+got):\n%s", diff)
	}
}

// TestATaskThatWaitsForTooLongEnds, and says before that for what it waits. A gang that waits in the
// line does not end by that.
func TestATaskThatWaitsForTooLongEnds(t *testing.T) {
	t.Parallel()
	alone := jobs.MakeFramework("alone").Role("worker", 1, jobs.RunForever().CPU("100000")).Obj()
	// Its wait is noted after 10 seconds, and may be written 10 seconds later.
	alone.Spec.TaskRoles[0].PreparingTimeoutSeconds = ptr.To[int32](60)
	gang := jobs.MakeFramework("inline").Gang().Role("worker", 2, jobs.RunForever().CPU("100000")).Obj()
	gang.Spec.TaskRoles[0].PreparingTimeoutSeconds = ptr.To[int32](1)
	namespace := submit(t, gang)
	cluster.CreateFramework(t, namespace, alone)
	waits := func(want int32) func(*frameworkv1.Framework) bool {
		return func(fw *frameworkv1.Framework) bool {
			if fw.Status == nil || len(fw.Status.Waiting) != 1 || fw.Status.Waiting[0].Tasks != want {
				return false
			}
			reason := fw.Status.Waiting[0].Reason // The other one if the scheduler takes its time.
			return reason == "Unschedulable" || reason == "NotYetScheduled"
		}
	}
	cluster.WaitFramework(t, namespace, alone.Name, "say that its task has no place", waits(1))
	done := cluster.WaitFrameworkState(t, namespace, alone.Name, frameworkv1.FrameworkCompleted)
	if end := done.Status.AttemptStatus.CompletionStatus; end.Code != frameworkv1.CodePodPreparingTimeout {
		t.Errorf("it has ended with %+v", end)
	}
	waiting := cluster.WaitFramework(t, namespace, gang.Name, "say that its tasks have no place", waits(2))
	if waiting.Status.AttemptStatus.CompletionStatus != nil || waiting.Status.AttemptStatus.ID != 0 {
		t.Errorf("the gang that waits in the line has ended: %+v", waiting.Status.AttemptStatus.CompletionStatus)
	}
}
