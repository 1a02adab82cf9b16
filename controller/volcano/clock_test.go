// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// TestAClockThatWasAheadHoldsUpNoJob: a controller takes over from another one whose clock was an hour ahead, and counts from when it
// has seen that.
func TestAClockThatWasAheadHoldsUpNoJob(t *testing.T) {
	now := time.Unix(1e9, 0)
	hourAhead := metav1.NewTime(now.Add(time.Hour))
	status := &batchv1alpha1.JobStatus{
		State:      batchv1alpha1.JobState{Phase: batchv1alpha1.JobCompleted, LastTransitionTime: hourAhead},
		Conditions: []batchv1alpha1.JobCondition{{Status: batchv1alpha1.JobPending, LastTransitionTime: hourAhead}},
		RetryCount: 2,
	}
	at := func(clock time.Time, memory Memory) *decision {
		d := newDecision(Snapshot{Job: &batchv1alpha1.Job{}, Memory: memory}, clock)
		d.next, d.reading = status, &reading{spec: &batchv1alpha1.JobSpec{TTLSecondsAfterFinished: ptr.To[int32](60)}}
		return d
	}
	first := at(now, Memory{})
	if run := first.nextRun(); run.After(now.Add(firstDistance)) {
		t.Errorf("the Job runs again %v after the take-over, want %v", run.Sub(now), firstDistance)
	}
	first.planRetention()
	later := at(now.Add(time.Minute), first.memory)
	if run := later.nextRun(); run.After(now.Add(firstDistance)) {
		t.Errorf("a minute later it runs again %v after the take-over", run.Sub(now))
	}
	if later.planRetention(); len(later.Plan.Actions) == 0 && !later.Plan.WakeAt.IsZero() {
		t.Errorf("a minute after the take-over the finished Job waits until %v to be deleted", later.Plan.WakeAt)
	}
}
