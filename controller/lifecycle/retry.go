// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Back-off after consecutive Transient failures. An attempt that ran for at least backoffReset starts the count again.
const (
	backoffFirst = 1 * time.Second
	backoffMost  = 5 * time.Minute
	backoffReset = 10 * time.Minute
)

// Back-off after consecutive quick attempts, whatever their result. An attempt is quick if no Pod could be created, or
// if the attempt ended within quickSpan of its start. Any other attempt starts the count again.
//
// The longest delay grows with the n tasks of the Framework's spec, so that all tasks together are retried no more
// often than quickTasks tasks would be:
//
//	longest = quickMost · max(1, n / quickTasks)
//
// Each delay is drawn between half of the longest and all of it, so all tasks together have 200 to 400 retries a
// minute, 270 in the mean.
const (
	quickSpan  = 1 * time.Second
	quickMost  = 1 * time.Minute
	quickTasks = 200
)

// retryDecision says whether an attempt is followed by another.
type retryDecision struct {
	retry bool
	// accountable retries count against maxRetryCount.
	accountable bool
	// delay is how long the retry waits.
	delay delayRange
	// backoffSec is the next RetryPolicyStatus.BackoffSec.
	backoffSec int64
}

// delayRange is a range, in seconds, from which a delay is drawn. It includes both bounds.
type delayRange struct {
	least, most int64
}

// draw chooses a delay of the range.
func (r delayRange) draw(entropy plan.Entropy) int64 {
	if r.least >= r.most {
		return r.least
	}
	return entropy.Between(r.least, r.most)
}

// longer returns the range of the longer of two delays.
func (r delayRange) longer(other delayRange) delayRange {
	return delayRange{least: max(r.least, other.least), most: max(r.most, other.most)}
}

// endedAttempt holds the facts on which a retry is decided, for a Framework or for a task.
type endedAttempt struct {
	policy     frameworkv1.RetryPolicySpec
	retries    frameworkv1.RetryPolicyStatus
	completion frameworkv1.CompletionStatus
	// ran is how long the attempt ran.
	ran time.Duration
	// quick reports that the attempt was quick, so that immediate retries of such attempts would be a hot loop.
	quick bool
	// tasks is how many tasks the Framework has.
	tasks int
	// conflictDelay is the delay after a Conflict. Nil for tasks, for which a Conflict is like any other Transient
	// failure.
	conflictDelay *delayRange
}

// decide reports whether and when there is another attempt.
func (a endedAttempt) decide() retryDecision {
	decision := a.decideByPolicy()
	if decision.retry && a.quick {
		backoff := a.quickBackoff()
		decision.delay = decision.delay.longer(delayRange{least: backoff / 2, most: backoff})
		decision.backoffSec = max(decision.backoffSec, backoff)
	}
	return decision
}

// decideByPolicy goes through the rules in order; the first that fits decides.
func (a endedAttempt) decideByPolicy() retryDecision {
	failed := !succeeded(a.completion)
	has := func(attribute frameworkv1.CompletionTypeAttribute) bool {
		return failed && slices.Contains(a.completion.Type.Attributes, attribute)
	}
	fancy, most := a.policy.FancyRetryPolicy, a.policy.MaxRetryCount
	switch {
	case a.endedByUser():
		return retryDecision{}
	case a.completion.Code == frameworkv1.CodeAdmissionWithdrawn:
		return retryDecision{retry: true} // when it is admitted again
	case fancy && has(frameworkv1.AttributeTransient) && has(frameworkv1.AttributeConflict) && a.conflictDelay != nil:
		return retryDecision{retry: true, delay: *a.conflictDelay}
	case fancy && has(frameworkv1.AttributeTransient):
		backoff := a.backoff()
		return retryDecision{retry: true, delay: delayRange{least: backoff, most: backoff}, backoffSec: backoff}
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

// endedByUser reports whether the attempt ended because the user wanted that, or because a larger part of the Framework
// ended.
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

// backoff returns the delay in seconds after a Transient failure: none for the first
// attempt and after a long run, then doubling.
func (a endedAttempt) backoff() int64 {
	if a.retries.TotalRetriedCount == 0 || a.ran >= backoffReset {
		return 0
	}
	return a.doubled(backoffMost)
}

// quickBackoff returns the longest delay in seconds after a quick attempt: one second for the first in a row, then
// doubling. The delay is drawn between half of that and all of it, so that attempts that failed together are not
// retried together.
func (a endedAttempt) quickBackoff() int64 {
	return a.doubled(quickMost * time.Duration(max(a.tasks, quickTasks)) / quickTasks)
}

// doubled is twice the last back-off in seconds, at least a second.
func (a endedAttempt) doubled(most time.Duration) int64 {
	last := min(configv1alpha1.Seconds(a.retries.BackoffSec), most)
	return int64(min(max(backoffFirst, 2*last), most) / time.Second)
}

// span returns the time between two times of a status, both of which may be unset.
func span(from, to *metav1.Time) time.Duration {
	if from == nil || to == nil {
		return 0
	}
	return to.Sub(from.Time)
}

// endedQuickly reports whether an attempt ended within quickSpan of when it began to run or, if it never ran, of its
// beginning. Times are whole seconds.
func endedQuickly(begun metav1.Time, ran, ended *metav1.Time) bool {
	if ran == nil {
		ran = &begun
	}
	return ended != nil && span(ran, ended) <= quickSpan
}

// couldNotCreatePod reports whether a Pod was refused for good.
func couldNotCreatePod(completion frameworkv1.CompletionStatus) bool {
	switch completion.Code {
	case frameworkv1.CodePodCreationPermanentError, frameworkv1.CodePodCreationUnknownError:
		return true
	default:
		return false
	}
}

func (d *decision) decideAttemptRetry() retryDecision {
	attempt := &d.next.AttemptStatus
	completion := attempt.CompletionStatus.CompletionStatus
	return endedAttempt{
		policy:     d.Framework.Spec.RetryPolicy,
		retries:    d.next.RetryPolicyStatus,
		completion: completion,
		ran:        span(attempt.RunTime, attempt.CompletionTime),
		quick: couldNotCreatePod(completion) ||
			endedQuickly(attempt.StartTime, attempt.RunTime, attempt.CompletionTime),
		tasks: d.specTasks,
		conflictDelay: &delayRange{
			least: d.Options.MinConflictDelaySeconds, most: d.Options.MaxConflictDelaySeconds,
		},
	}.decide()
}

func (t cursor) decideRetry() retryDecision {
	if t.spec == nil {
		return retryDecision{}
	}
	task, attempt := t.status(), &t.status().AttemptStatus
	return endedAttempt{
		policy:     t.spec.Task.RetryPolicy,
		retries:    task.RetryPolicyStatus,
		completion: attempt.CompletionStatus.CompletionStatus,
		ran:        span(attempt.RunTime, attempt.CompletionTime),
		quick:      attempt.PodUID == nil || endedQuickly(attempt.StartTime, attempt.RunTime, attempt.CompletionTime),
		tasks:      t.d.specTasks,
	}.decide()
}
