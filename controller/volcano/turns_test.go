// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

func TestWhatIsCountedOfAJob(t *testing.T) {
	created := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	in := func(phase batchv1alpha1.JobPhase, retries int32, before ...batchv1alpha1.JobPhase) *batchv1alpha1.JobStatus {
		status := &batchv1alpha1.JobStatus{RetryCount: retries, State: batchv1alpha1.JobState{Phase: phase, LastTransitionTime: metav1.NewTime(created.Add(time.Minute))}}
		for _, phase := range before {
			status.Conditions = append(status.Conditions, batchv1alpha1.JobCondition{Status: phase})
		}
		return status
	}
	const pending, running, restarting = batchv1alpha1.JobPending, batchv1alpha1.JobRunning, batchv1alpha1.JobRestarting
	for name, tc := range map[string]struct {
		before, after *batchv1alpha1.JobStatus
		want          []plan.Turn
	}{
		"its first status":    {after: in(pending, 0)},
		"it runs":             {in(pending, 0, pending), in(running, 0, pending, running), []plan.Turn{{Kind: plan.Ran, Took: time.Minute}}},
		"it runs once more":   {in(pending, 1, pending, running), in(running, 1, running), nil},
		"it is restarted":     {in(running, 0), in(restarting, 1), []plan.Turn{{Kind: plan.Retried, Reason: "Restart"}}},
		"it completes":        {in(running, 0), in(batchv1alpha1.JobCompleted, 0), []plan.Turn{{Kind: plan.Completed, Type: "Succeeded"}}},
		"it is aborted":       {in(running, 0), in(batchv1alpha1.JobAborted, 0), []plan.Turn{{Kind: plan.Completed, Type: "Aborted"}}},
		"somebody's own word": {in(running, 0), in("x-12345", 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Turns(created, tc.before, tc.after)); diff != "" {
				t.Errorf("what is counted differs (-want,+got):\n%s", diff)
			}
		})
	}
	if got := KnownPhase(in("x-12345", 0)); got != "Other" {
		t.Errorf("a phase that somebody has made up is counted as %q", got)
	}
}
