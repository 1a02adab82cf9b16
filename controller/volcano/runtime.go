// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// limitOnRecord is the key of the run-time limit in status.controlledResources, with values such as "version=2
// seconds=3600 since=1764374400". The limit counts only for that version of the Job.
const limitOnRecord = "runtime-limit"

// limitFormat is how the limit is written.
const limitFormat = "version=%d seconds=%d since=%d"

// readLimit returns the run-time limit that a status records for the Job's version; nil if it records none.
func readLimit(status *batchv1alpha1.JobStatus) *schedulingv1alpha1.RuntimeLimit {
	if status == nil {
		return nil
	}
	var version, seconds int32
	var since int64
	if n, _ := fmt.Sscanf(status.ControlledResources[limitOnRecord], limitFormat, &version, &seconds, &since); n < 3 || version != status.Version {
		return nil
	}
	return &schedulingv1alpha1.RuntimeLimit{Seconds: seconds, Since: metav1.Unix(since, 0)}
}

// runtimes returns the run times that the user asks for.
func (d *decision) runtimes() (podgroup.Runtimes, []string) {
	var fields podgroup.Runtimes
	if estimate := d.Job.Spec.RunningEstimate; estimate != nil {
		if span, err := time.ParseDuration(string(*estimate)); err == nil && span > 0 {
			fields.Expected = ptr.To(int32(min(math.Ceil(span.Seconds()), schedulingv1alpha1.MaxRuntimeSeconds)))
		}
	}
	return podgroup.ReadRuntimes(d.Job, fields)
}

// runtimesInForce returns the run times that count for this version of the Job. Once a limit counts, it can only become
// shorter.
func (d *decision) runtimesInForce() podgroup.Runtimes {
	runtimes, _ := d.runtimes()
	return runtimes.InForce(readLimit(d.next))
}

// applyRuntimeLimit terminates a Job that has reached its limit. The time counts from when minAvailable Pods ran. The
// limit has to be in the written status before it can end the Job, and the Pods are listed first: they may have ended in
// time, and the cache may not show that yet.
func (d *decision) applyRuntimeLimit() (goOn bool) {
	runtimes, problems := d.runtimes()
	for _, problem := range problems {
		d.WarnOnce(podgroup.ReasonInvalidRuntime, "%s", problem)
	}
	phase := d.next.State.Phase
	if !isOpen(phase) || d.unclear {
		return true
	}
	limit := podgroup.CountRuntime(readLimit(d.next), runtimes.Max, phase == batchv1alpha1.JobRunning, d.now)
	if limit == nil {
		return true
	}
	d.next.ControlledResources = jobpods.With(d.next.ControlledResources, map[string]string{
		limitOnRecord: fmt.Sprintf(limitFormat, d.next.Version, limit.Seconds, limit.Since.Unix()),
	})
	if !podgroup.SameLimit(limit, readLimit(d.Persisted)) {
		d.Persist(plan.PersistNow)
		return true
	}
	span := time.Duration(limit.Seconds) * time.Second
	if due := d.sinceOnRecord(limit.Since).Add(span); d.clock.Before(due) {
		d.WakeAt(due)
		return true
	}
	switch {
	case phase == batchv1alpha1.JobRunning && d.endsByItself():
		return true // Pods that ended in time decide, though the controller has seen their ends only now.
	case !d.WasListed(KindPod):
		d.listsPods = true
		return true
	}
	why := fmt.Sprintf("The Job ran for %v, which is its limit", span)
	d.jobStops(busv1alpha1.ActionTerminateJob, ReasonRuntimeLimitExceeded, why)
	d.Tell(true, ReasonRuntimeLimitExceeded, "%s", why)
	return false
}
