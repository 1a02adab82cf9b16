// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
)

// Back-off of Transient failures in a row. An attempt that ran for at least
// backoffReset starts the row anew.
const (
	backoffFirst = 1 * time.Second
	backoffMost  = 5 * time.Minute
	backoffReset = 10 * time.Minute
)

// retryDecision says whether an attempt is followed by another.
type retryDecision struct {
	retry bool
	// accountable retries count against maxRetryCount.
	accountable bool
	delaySec    int64
	// backoffSec is the next RetryPolicyStatus.BackoffSec.
	backoffSec int64
}

// endedAttempt is what a retry is decided on, for a Framework and a task alike.
type endedAttempt struct {
	policy     frameworkv1.RetryPolicySpec
	retries    frameworkv1.RetryPolicyStatus
	completion frameworkv1.CompletionStatus
	// ran is how long it ran.
	ran time.Duration
	// conflictDelay draws the delay after a Conflict. Nil for tasks: theirs is
	// that of any Transient failure.
	conflictDelay func() int64
}

// decide goes through the rules in order; the first that fits decides.
func (a endedAttempt) decide() retryDecision {
	failed := !succeeded(a.completion)
	has := func(attribute frameworkv1.CompletionTypeAttribute) bool {
		return failed && slices.Contains(a.completion.Type.Attributes, attribute)
	}
	fancy, most := a.policy.FancyRetryPolicy, a.policy.MaxRetryCount
	switch {
	case a.endedByUser():
		return retryDecision{}
	case fancy && has(frameworkv1.AttributeTransient) && has(frameworkv1.AttributeConflict) && a.conflictDelay != nil:
		return retryDecision{retry: true, delaySec: a.conflictDelay()}
	case fancy && has(frameworkv1.AttributeTransient):
		backoff := a.backoff()
		return retryDecision{retry: true, delaySec: backoff, backoffSec: backoff}
	case fancy && has(frameworkv1.AttributePermanent):
		return retryDecision{}
	case most == frameworkv1.AlwaysRetry,
		failed && most == frameworkv1.UnlimitedRetry,
		failed && a.retries.AccountableRetriedCount < most:
		return retryDecision{retry: true, accountable: true}
	default:
		return retryDecision{}
	}
}

// endedByUser says whether the attempt ended because more of the Framework, or
// the user, wanted it to.
func (a endedAttempt) endedByUser() bool {
	switch a.completion.Code {
	case frameworkv1.CodeStopFrameworkRequested,
		frameworkv1.CodeFrameworkAttemptCompletion,
		frameworkv1.CodeDeleteTaskRequested:
		return true
	default:
		return false
	}
}

// backoff is the delay in seconds after a Transient failure: none for the first
// attempt and after a long run, then doubling.
func (a endedAttempt) backoff() int64 {
	if a.retries.TotalRetriedCount == 0 || a.ran >= backoffReset {
		return 0
	}
	last := min(configv1alpha1.Seconds(a.retries.BackoffSec), backoffMost)
	return int64(min(max(backoffFirst, 2*last), backoffMost) / time.Second)
}

// ranFor is the time between two times of a status, of which both may be unset.
func ranFor(from, to *metav1.Time) time.Duration {
	if from == nil || to == nil {
		return 0
	}
	return to.Sub(from.Time)
}

func (d *decision) decideAttemptRetry() retryDecision {
	attempt := &d.next.AttemptStatus
	return endedAttempt{
		policy:     d.Framework.Spec.RetryPolicy,
		retries:    d.next.RetryPolicyStatus,
		completion: attempt.CompletionStatus.CompletionStatus,
		ran:        ranFor(attempt.RunTime, attempt.CompletionTime),
		conflictDelay: func() int64 {
			return d.Between(d.Options.MinConflictDelaySeconds, d.Options.MaxConflictDelaySeconds)
		},
	}.decide()
}

func (t cursor) decideRetry() retryDecision {
	if t.spec == nil {
		return retryDecision{}
	}
	task := t.status()
	return endedAttempt{
		policy:     t.spec.Task.RetryPolicy,
		retries:    task.RetryPolicyStatus,
		completion: task.AttemptStatus.CompletionStatus.CompletionStatus,
		ran:        ranFor(task.AttemptStatus.RunTime, task.AttemptStatus.CompletionTime),
	}.decide()
}
