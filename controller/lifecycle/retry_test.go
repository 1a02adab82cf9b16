// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
	conflict15 := &delayRange{60, 900}
	accountable := retryDecision{retry: true, accountable: true}

	tests := map[string]struct {
		policy        frameworkv1.RetryPolicySpec
		retries       frameworkv1.RetryPolicyStatus
		code          frameworkv1.CompletionCode
		ran           time.Duration
		quick         bool
		tasks         int
		conflictDelay *delayRange
		want          retryDecision
	}{
		"by default a failure is not retried":                    {code: unknown},
		"by default a success is not retried":                    {code: success},
		"a stop is not retried even always":                      {policy: policy(false, -2), code: frameworkv1.CodeStopFrameworkRequested},
		"the attempt's end is not retried even always":           {policy: policy(false, -2), code: frameworkv1.CodeFrameworkAttemptCompletion},
		"a deleted task is not retried even always":              {policy: policy(true, -2), code: frameworkv1.CodeDeleteTaskRequested},
		"fancy: a first Transient failure is retried at once":    {policy: policy(true, 0), code: transient, want: retryDecision{retry: true}},
		"fancy: a second Transient failure waits":                {policy: policy(true, 0), retries: retried(1, 0, 0), code: transient, want: retryDecision{retry: true, delay: delayRange{1, 1}, backoffSec: 1}},
		"fancy: Transient failures in a row wait twice as long":  {policy: policy(true, 0), retries: retried(2, 0, 1), code: transient, want: retryDecision{retry: true, delay: delayRange{2, 2}, backoffSec: 2}},
		"fancy: the wait is bounded":                             {policy: policy(true, 0), retries: retried(50, 0, 256), code: transient, want: retryDecision{retry: true, delay: delayRange{300, 300}, backoffSec: 300}},
		"fancy: ten minutes of running end the row":              {policy: policy(true, 0), retries: retried(50, 0, 300), code: transient, ran: 10 * time.Minute, want: retryDecision{retry: true}},
		"fancy: a Conflict of a Framework waits a random time":   {policy: policy(true, 0), code: conflict, conflictDelay: conflict15, want: retryDecision{retry: true, delay: delayRange{60, 900}}},
		"fancy: a Conflict of a task is like other Transient":    {policy: policy(true, 0), code: conflict, want: retryDecision{retry: true}},
		"fancy: a Permanent failure is not retried even always":  {policy: policy(true, -2), code: permanent},
		"fancy: a success is retried always":                     {policy: policy(true, -2), code: success, want: accountable},
		"fancy: an unknown failure counts":                       {policy: policy(true, 1), code: unknown, want: accountable},
		"fancy: an unknown failure counts until the bound":       {policy: policy(true, 1), retries: retried(7, 1, 0), code: unknown},
		"always retries a success":                               {policy: policy(false, -2), code: success, want: accountable},
		"always retries a Permanent failure":                     {policy: policy(false, -2), code: permanent, want: accountable},
		"unlimited retries every failure":                        {policy: policy(false, -1), retries: retried(9, 9, 0), code: permanent, want: accountable},
		"unlimited does not retry a success":                     {policy: policy(false, -1), code: success},
		"not fancy: a Conflict neither waits nor is free":        {policy: policy(false, 1), code: conflict, conflictDelay: conflict15, want: accountable},
		"bounded retries up to the bound":                        {policy: policy(false, 3), retries: retried(2, 2, 0), code: transient, want: accountable},
		"bounded does not retry beyond the bound":                {policy: policy(false, 3), retries: retried(3, 3, 0), code: transient},
		"bounded does not retry a success":                       {policy: policy(false, 3), code: success},
		"a gang that waited too long is retried like a Conflict": {policy: policy(true, 0), code: frameworkv1.CodePodGroupScheduleTimeout, conflictDelay: conflict15, want: retryDecision{retry: true, delay: delayRange{60, 900}}},
		"quick: the first waits up to a second":                  {policy: policy(false, -1), code: permanent, quick: true, want: retryDecision{retry: true, accountable: true, delay: delayRange{0, 1}, backoffSec: 1}},
		"quick: the second waits up to two seconds":              {policy: policy(false, -1), retries: retried(1, 1, 1), code: permanent, quick: true, want: retryDecision{retry: true, accountable: true, delay: delayRange{1, 2}, backoffSec: 2}},
		"quick: the wait is bounded":                             {policy: policy(false, -1), retries: retried(50, 50, 60), code: permanent, quick: true, want: retryDecision{retry: true, accountable: true, delay: delayRange{30, 60}, backoffSec: 60}},
		"quick: up to 200 tasks change nothing":                  {policy: policy(false, -1), retries: retried(50, 50, 3000), code: permanent, quick: true, tasks: 200, want: retryDecision{retry: true, accountable: true, delay: delayRange{30, 60}, backoffSec: 60}},
		"quick: more tasks wait for longer in the end":           {policy: policy(false, -1), retries: retried(50, 50, 300), code: permanent, quick: true, tasks: 1000, want: retryDecision{retry: true, accountable: true, delay: delayRange{150, 300}, backoffSec: 300}},
		"quick: the most tasks wait for the longest":             {policy: policy(false, -1), retries: retried(50, 50, 3000), code: permanent, quick: true, tasks: 10_000, want: retryDecision{retry: true, accountable: true, delay: delayRange{1500, 3000}, backoffSec: 3000}},
		"quick: more tasks begin with no longer a wait":          {policy: policy(false, -1), code: permanent, quick: true, tasks: 10_000, want: retryDecision{retry: true, accountable: true, delay: delayRange{0, 1}, backoffSec: 1}},
		"fancy: more tasks wait no longer":                       {policy: policy(true, 0), retries: retried(50, 0, 3000), code: transient, tasks: 10_000, want: retryDecision{retry: true, delay: delayRange{300, 300}, backoffSec: 300}},
		"quick: a success waits too":                             {policy: policy(false, -2), code: success, quick: true, want: retryDecision{retry: true, accountable: true, delay: delayRange{0, 1}, backoffSec: 1}},
		"quick: bounded retries wait too":                        {policy: policy(true, 3), code: unknown, quick: true, want: retryDecision{retry: true, accountable: true, delay: delayRange{0, 1}, backoffSec: 1}},
		"quick: the bound of retries stays":                      {policy: policy(false, 3), retries: retried(3, 3, 4), code: unknown, quick: true},
		"quick and a first Transient failure":                    {policy: policy(true, 0), code: transient, quick: true, want: retryDecision{retry: true, delay: delayRange{0, 1}, backoffSec: 1}},
		"quick and Transient again: the longer wait":             {policy: policy(true, 0), retries: retried(9, 0, 100), code: transient, quick: true, want: retryDecision{retry: true, delay: delayRange{200, 200}, backoffSec: 200}},
		"quick and a Conflict: the longer wait":                  {policy: policy(true, 0), retries: retried(9, 0, 60), code: conflict, quick: true, conflictDelay: &delayRange{0, 900}, want: retryDecision{retry: true, delay: delayRange{30, 900}, backoffSec: 60}},
		"an attempt that was not quick ends the row":             {policy: policy(false, -1), retries: retried(9, 9, 60), code: permanent, want: accountable},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := endedAttempt{
				policy: tc.policy, retries: tc.retries, completion: Completion(tc.code, ""),
				ran: tc.ran, quick: tc.quick, tasks: tc.tasks, conflictDelay: tc.conflictDelay,
			}.decide()
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(retryDecision{}, delayRange{})); diff != "" {
				t.Errorf("unexpected decision (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHopelessAttemptsAreRetriedEverMoreSeldom: whatever the policy, an attempt that
// can't create a Pod, or whose Pod ends at once, makes no hot loop.
func TestHopelessAttemptsAreRetriedEverMoreSeldom(t *testing.T) {
	always, unlimited := frameworkv1.AlwaysRetry, frameworkv1.UnlimitedRetry
	invalid := func(pod *corev1.Pod) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, nil)
	}
	tests := map[string]struct {
		fancy          bool
		attempts, task int32
		refuse         func(*corev1.Pod) error
		template       string
		phase          corev1.PodPhase
		exitCode       int32
		last           time.Duration // how long each Pod lasts
		least, most    int32
	}{
		"a task whose Pods are refused":                   {task: unlimited, refuse: invalid, least: 13, most: 25},
		"an attempt whose Pods are refused":               {attempts: unlimited, refuse: invalid, least: 13, most: 25},
		"a task whose template is no Pod":                 {task: always, template: `{"spec":1}`, least: 13, most: 25},
		"a task that fails within a second":               {task: unlimited, phase: corev1.PodFailed, exitCode: 1, last: time.Second, least: 13, most: 25},
		"a task that succeeds within a second":            {task: always, phase: corev1.PodSucceeded, last: time.Second, least: 13, most: 25},
		"a task that fails within a second, fancy policy": {fancy: true, task: unlimited, phase: corev1.PodFailed, exitCode: 1, last: time.Second, least: 13, most: 25},
		"a task that ran for longer is retried at once":   {task: unlimited, phase: corev1.PodFailed, exitCode: 1, last: 2 * time.Second, least: 195, most: 205},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := role("w", 1)
			r.Task.RetryPolicy = frameworkv1.RetryPolicySpec{FancyRetryPolicy: tc.fancy, MaxRetryCount: tc.task}
			if tc.template != "" {
				r.Task.Pod.Raw = []byte(tc.template)
			}
			f := framework(r)
			f.Spec.RetryPolicy.MaxRetryCount = tc.attempts
			w := newWorld(t, f)
			w.refuse = tc.refuse
			begun := w.now
			for ; w.now.Sub(begun) < 10*time.Minute; w.now = w.now.Add(time.Second) {
				w.run()
				w.collectGarbage()
				w.run()
				if tc.phase == "" {
					continue
				}
				task := taskOf(w.written, 0)
				if pod := w.pods["fw-w-0"]; pod != nil && pod.Status.Phase == corev1.PodPending {
					w.runPods()
				} else if pod != nil && w.now.Sub(task.AttemptStatus.RunTime.Time) >= tc.last {
					w.setPhase("fw-w-0", tc.phase, tc.exitCode)
					w.settle()
				}
			}
			retries := w.written.RetryPolicyStatus.TotalRetriedCount + taskOf(w.written, 0).RetryPolicyStatus.TotalRetriedCount
			if retries < tc.least || retries > tc.most {
				t.Errorf("%d retries in ten minutes, want %d to %d; the status is %s", retries, tc.least, tc.most, transcript(w.written))
			}
		})
	}
}

// TestManyHopelessTasksAreRetriedNoMoreOftenThanSome: a Framework of any size settles at
// the same number of creations a minute.
func TestManyHopelessTasksAreRetriedNoMoreOftenThanSome(t *testing.T) {
	r := role("w", 600)
	r.Task.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
	w := newWorld(t, framework(r))
	creations := 0
	w.refuse = func(pod *corev1.Pod) error {
		creations++
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, nil)
	}
	const minutes, step = 20, 5 * time.Second
	for begun := w.now; w.now.Sub(begun) < 2*minutes*time.Minute; w.now = w.now.Add(step) {
		if w.now.Sub(begun) == minutes*time.Minute {
			creations = 0
		}
		w.run()
	}
	if got := creations / minutes; got < 200 || got > 400 {
		t.Errorf("%d creations a minute in the end, want 200 to 400", got)
	}
}

// TestQuickEnds: a task whose Pod is refused after it has waited for hours for it has
// ended quickly all the same.
func TestQuickEnds(t *testing.T) {
	r := role("w", 1)
	r.Task.RetryPolicy.MaxRetryCount = frameworkv1.UnlimitedRetry
	w := newWorld(t, framework(r))
	w.refuse = func(pod *corev1.Pod) error { return apierrors.NewTooManyRequests("busy", 1) }
	w.run()
	w.now = w.now.Add(time.Hour)
	w.refuse = func(pod *corev1.Pod) error {
		w.refuse = nil
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, nil)
	}
	w.run()
	w.now = w.now.Add(time.Second)
	w.run()
	if got := taskOf(w.written, 0).RetryPolicyStatus.BackoffSec; got != 1 {
		t.Errorf("the back-off is %d s, want that of a first quick end; the status is %s", got, transcript(w.written))
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
