// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"fmt"
	"strings"
	"time"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// gang.maxRuntimeSeconds, or the annotation, bounds how long an attempt runs. The time begins when enough tasks
// run for the first time: minMember of a gang, one task of another Framework. From then on
// the status has since when, and the limit, so that neither a restart of the controller nor a longer
// limit in the spec gives the attempt more time.
//
// The watch of Pods may be behind: tasks with Pods that have ended in time would be ended for what the cache says of
// them. So all Pods of the attempt are looked at live before the end.

// runtimes returns the run times that the user asks for.
func (d *decision) runtimes() (podgroup.Runtimes, []string) {
	var fields podgroup.Runtimes
	if gang := d.Framework.Spec.Gang; gang != nil {
		fields = podgroup.Runtimes{Max: gang.MaxRuntimeSeconds, Expected: gang.ExpectedRuntimeSeconds}
	}
	return podgroup.ReadRuntimes(d.Framework, fields)
}

// runtimesInForce returns the run times that count for the attempt. Once a limit counts, it can only become shorter.
func (d *decision) runtimesInForce() podgroup.Runtimes {
	runtimes, _ := d.runtimes()
	return runtimes.InForce(d.next.AttemptStatus.RuntimeLimit)
}

// warnOfRuntimes reports run times that make no sense.
func (d *decision) warnOfRuntimes() {
	if _, problems := d.runtimes(); len(problems) > 0 {
		d.Tell(true, podgroup.ReasonInvalidRuntime, "%s", strings.Join(problems, "; "))
	}
}

// applyRuntimeLimit completes an attempt that has reached the limit.
func (d *decision) applyRuntimeLimit() (goOn bool) {
	if d.completing() || !d.hasInstance() {
		return true
	}
	attempt := &d.next.AttemptStatus
	runtimes, _ := d.runtimes()
	attempt.RuntimeLimit = podgroup.CountRuntime(attempt.RuntimeLimit, runtimes.Max, runtimes.Max != nil && d.enoughRun(), d.now)
	limit := attempt.RuntimeLimit
	if limit == nil {
		return true
	}
	span := time.Duration(limit.Seconds) * time.Second
	over, at := d.over(limit.Since, span)
	d.WakeAt(at)
	switch {
	case !podgroup.SameLimit(limit, d.Persisted.AttemptStatus.RuntimeLimit):
		d.Persist(plan.PersistNow)
	case !over:
	case !d.podsListed:
		d.listsPods = true
	case d.allHaveResults():
		// The completion policy decides as soon as the Pods are gone.
	default:
		d.attemptBecomesDeletionPending(attemptCompletion(frameworkv1.CodeRuntimeLimitExceeded,
			fmt.Sprintf("The attempt ran for %v, which is its limit", span)))
	}
	return true
}

// enoughRun reports whether so many tasks run or have succeeded that the time of the run-time limit counts.
func (d *decision) enoughRun() bool {
	if d.isGang() {
		return d.minimumHolds(cursor.isActive)
	}
	one := false
	d.eachTask(func(t cursor) { one = one || t.wanted() && t.isActive() })
	return one
}

// allHaveResults reports whether the end of each task of the spec is known.
func (d *decision) allHaveResults() bool {
	open := false
	d.eachTask(func(t cursor) { open = open || t.wanted() && t.status().AttemptStatus.CompletionStatus == nil })
	return !open
}

// isActive reports whether the task runs or has succeeded.
func (t cursor) isActive() bool {
	attempt := &t.status().AttemptStatus
	return t.status().State == frameworkv1.TaskAttemptRunning ||
		attempt.CompletionStatus != nil && succeeded(attempt.CompletionStatus.CompletionStatus)
}
