// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

// verdict is a natural end: a phase, and why.
type verdict struct {
	phase           batchv1alpha1.JobPhase
	reason, message string
}

// followRunning judges a Job that runs. Rules are tried in this order.
func (d *decision) followRunning(c counts) {
	for _, rule := range []func(*decision, counts) (verdict, bool){
		(*decision).scaledToNothing,
		(*decision).enoughSuccesses,
		(*decision).allEnded,
		(*decision).tooManyWait,
	} {
		v, ok := rule(d, c)
		if !ok {
			continue
		}
		if v.phase == "" {
			return
		}
		d.enter(v.phase, v.reason, v.message)
		if isFinal(v.phase) {
			d.noteMissing(wholeJob, false)
			d.expectNoPods()
		}
		return
	}
}

// endsByItself reports whether a running Job ends because of Pods that have ended.
func (d *decision) endsByItself() bool {
	c := d.counts()
	_, some := d.enoughSuccesses(c)
	_, all := d.allEnded(c)
	return some || all && d.replicas() > 0
}

// scaledToNothing: a Job without replicas pauses.
func (d *decision) scaledToNothing(counts) (verdict, bool) {
	return verdict{}, d.replicas() == 0
}

// enoughSuccesses: minSuccess completes the Job, whatever else runs.
func (d *decision) enoughSuccesses(c counts) (verdict, bool) {
	least := d.spec.MinSuccess
	if least == nil || c.succeeded < *least {
		return verdict{}, false
	}
	return verdict{batchv1alpha1.JobCompleted, ReasonMinSuccess,
		fmt.Sprintf("%d Pods have succeeded, minSuccess is %d", c.succeeded, *least)}, true
}

// allEnded: all Pods have ended, and the successes decide.
func (d *decision) allEnded(c counts) (verdict, bool) {
	if c.succeeded+c.failed != d.replicas() {
		return verdict{}, false
	}
	failed := func(format string, args ...any) (verdict, bool) {
		return verdict{batchv1alpha1.JobFailed, ReasonTooFewSuccesses, fmt.Sprintf(format, args...)}, true
	}
	if d.taskMinimaCount() {
		for _, t := range d.tasks {
			if got := t.record.succeeded.Count(); got < t.minAvailable() {
				return failed("All Pods have ended; %d of task %s have succeeded, %d are needed", got, t.spec.Name, t.minAvailable())
			}
		}
	}
	switch {
	case d.spec.MinSuccess != nil:
		return failed("All Pods have ended; %d have succeeded, minSuccess is %d", c.succeeded, *d.spec.MinSuccess)
	case c.succeeded < d.minAvailable():
		return failed("All Pods have ended; %d have succeeded, minAvailable is %d", c.succeeded, d.minAvailable())
	}
	return verdict{batchv1alpha1.JobCompleted, ReasonAllEnded,
		fmt.Sprintf("All Pods have ended; %d of %d have succeeded", c.succeeded, d.replicas())}, true
}

// tooManyWait: the minimum does not hold any more.
func (d *decision) tooManyWait(c counts) (verdict, bool) {
	if c.pending <= d.replicas()-d.minAvailable() {
		return verdict{}, false
	}
	return verdict{batchv1alpha1.JobPending, ReasonTooManyPending,
		fmt.Sprintf("%d of %d Pods wait to run, %d have to run", c.pending, d.replicas(), d.minAvailable())}, true
}

// taskMinimaCount reports whether the minima of tasks count. They do only if the Job's minAvailable is at least their
// sum.
func (d *decision) taskMinimaCount() bool {
	sum := int32(0)
	for _, t := range d.tasks {
		sum += t.minAvailable()
	}
	return d.minAvailable() >= sum
}
