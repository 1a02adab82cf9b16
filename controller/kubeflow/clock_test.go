// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
)

// TestAClockThatWasAheadHoldsUpNoLimit: a controller takes over from another one whose clock was an hour ahead, and counts from when it
// has seen that.
func TestAClockThatWasAheadHoldsUpNoLimit(t *testing.T) {
	now := time.Unix(1e9, 0)
	hourAhead := metav1.NewTime(now.Add(time.Hour))
	job := &Job{}
	job.Spec.RunPolicy.ActiveDeadlineSeconds, job.Spec.RunPolicy.TTLSecondsAfterFinished = ptr.To[int64](60), ptr.To[int32](60)
	at := func(clock time.Time, memory Memory) *decision {
		d := newDecision(Snapshot{Job: job, Memory: memory}, clock, steady{})
		d.kind, d.reading = &kind{}, &reading{}
		d.next = &kubeflowv1.JobStatus{StartTime: &hourAhead, CompletionTime: &hourAhead}
		return d
	}
	first := at(now, Memory{})
	if limit := first.overLimit(); limit != "" {
		t.Errorf("a limit is reached at once: %s", limit)
	}
	first.planRetention()
	later := at(now.Add(time.Minute), first.memory)
	if later.overLimit() == "" {
		t.Error("a minute after the take-over activeDeadlineSeconds, 60, are not over")
	}
	if later.planRetention(); !later.Plan.WakeAt.IsZero() {
		t.Errorf("a minute after the take-over the job waits until %v to be deleted", later.Plan.WakeAt)
	}
}
