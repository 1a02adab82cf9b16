// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

func TestRetryDecision(t *testing.T) {
	const (
		transient = frameworkv1.CodeContainerTransientFailed
		conflict  = frameworkv1.CodeContainerTransientConflictFailed
		permanent = frameworkv1.CodeContainerPermanentFailed
		unknown   = frameworkv1.CodePodFailedWithoutFailedContainer
		success   = frameworkv1.CodeSucceeded
	)
	policy := func(fancy bool, most int32) frameworkv1.RetryPolicySpec {
		return frameworkv1.RetryPolicySpec{FancyRetryPolicy: fancy, MaxRetryCount: most}
	}
	retried := func(total, accountable int32, backoff int64) frameworkv1.RetryPolicyStatus {
		return frameworkv1.RetryPolicyStatus{TotalRetriedCount: total, AccountableRetriedCount: accountable, BackoffSec: backoff}
	}
	drawConflict := func() int64 { return 300 }
	accountable := retryDecision{retry: true, accountable: true}

	tests := map[string]struct {
		policy        frameworkv1.RetryPolicySpec
		retries       frameworkv1.RetryPolicyStatus
		code          frameworkv1.CompletionCode
		ran           time.Duration
		conflictDelay func() int64
		want          retryDecision
	}{
		"by default a failure is not retried":                    {code: unknown},
		"by default a success is not retried":                    {code: success},
		"a stop is not retried even always":                      {policy: policy(false, -2), code: frameworkv1.CodeStopFrameworkRequested},
		"the attempt's end is not retried even always":           {policy: policy(false, -2), code: frameworkv1.CodeFrameworkAttemptCompletion},
		"a deleted task is not retried even always":              {policy: policy(true, -2), code: frameworkv1.CodeDeleteTaskRequested},
		"fancy: a first Transient failure is retried at once":    {policy: policy(true, 0), code: transient, want: retryDecision{retry: true}},
		"fancy: a second Transient failure waits":                {policy: policy(true, 0), retries: retried(1, 0, 0), code: transient, want: retryDecision{retry: true, delaySec: 1, backoffSec: 1}},
		"fancy: Transient failures in a row wait twice as long":  {policy: policy(true, 0), retries: retried(2, 0, 1), code: transient, want: retryDecision{retry: true, delaySec: 2, backoffSec: 2}},
		"fancy: the wait is bounded":                             {policy: policy(true, 0), retries: retried(50, 0, 256), code: transient, want: retryDecision{retry: true, delaySec: 300, backoffSec: 300}},
		"fancy: ten minutes of running end the row":              {policy: policy(true, 0), retries: retried(50, 0, 300), code: transient, ran: 10 * time.Minute, want: retryDecision{retry: true}},
		"fancy: a Conflict of a Framework waits a random time":   {policy: policy(true, 0), code: conflict, conflictDelay: drawConflict, want: retryDecision{retry: true, delaySec: 300}},
		"fancy: a Conflict of a task is like other Transient":    {policy: policy(true, 0), code: conflict, want: retryDecision{retry: true}},
		"fancy: a Permanent failure is not retried even always":  {policy: policy(true, -2), code: permanent},
		"fancy: a success is retried always":                     {policy: policy(true, -2), code: success, want: accountable},
		"fancy: an unknown failure counts":                       {policy: policy(true, 1), code: unknown, want: accountable},
		"fancy: an unknown failure counts until the bound":       {policy: policy(true, 1), retries: retried(7, 1, 0), code: unknown},
		"always retries a success":                               {policy: policy(false, -2), code: success, want: accountable},
		"always retries a Permanent failure":                     {policy: policy(false, -2), code: permanent, want: accountable},
		"unlimited retries every failure":                        {policy: policy(false, -1), retries: retried(9, 9, 0), code: permanent, want: accountable},
		"unlimited does not retry a success":                     {policy: policy(false, -1), code: success},
		"not fancy: a Conflict neither waits nor is free":        {policy: policy(false, 1), code: conflict, conflictDelay: drawConflict, want: accountable},
		"bounded retries up to the bound":                        {policy: policy(false, 3), retries: retried(2, 2, 0), code: transient, want: accountable},
		"bounded does not retry beyond the bound":                {policy: policy(false, 3), retries: retried(3, 3, 0), code: transient},
		"bounded does not retry a success":                       {policy: policy(false, 3), code: success},
		"a gang that waited too long is retried like a Conflict": {policy: policy(true, 0), code: frameworkv1.CodePodGroupScheduleTimeout, conflictDelay: drawConflict, want: retryDecision{retry: true, delaySec: 300}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := endedAttempt{
				policy: tc.policy, retries: tc.retries, completion: Completion(tc.code, ""),
				ran: tc.ran, conflictDelay: tc.conflictDelay,
			}.decide()
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(retryDecision{})); diff != "" {
				t.Errorf("unexpected decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTaskOfARoleThatLeftTheSpecIsNotRetried, though its policy was to retry
// always: the role goes while the Pod of the failed attempt is being deleted.
func TestTaskOfARoleThatLeftTheSpecIsNotRetried(t *testing.T) {
	for name, removed := range map[string]bool{"it stays: retried": false, "it goes: not retried": true} {
		t.Run(name, func(t *testing.T) {
			f := framework(role("stays", 1), role("goes", 1))
			f.Spec.TaskRoles[1].Task.RetryPolicy.MaxRetryCount = frameworkv1.AlwaysRetry
			w := newWorld(t, f)
			w.run()
			w.runPods()
			w.setPhase("fw-goes-0", corev1.PodFailed, 7)
			w.run()
			if removed {
				w.edit(func(f *frameworkv1.Framework) { f.Spec.TaskRoles = f.Spec.TaskRoles[:1] })
			}
			w.settle()
			want := "F#0 AttemptRunning, stays-0#0 AttemptRunning"
			if !removed {
				want += ", goes-0#1 AttemptPreparing"
			}
			if diff := cmp.Diff(want, transcript(w.readBack(w.written))); diff != "" {
				t.Errorf("unexpected status at the end (-want +got):\n%s", diff)
			}
		})
	}
}
