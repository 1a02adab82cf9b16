// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// runtimes returns the run times that the user asks for by annotations.
func (d *decision) runtimes() (podgroup.Runtimes, []string) {
	return podgroup.ReadRuntimes(d.Job, podgroup.Runtimes{})
}

// runtimesOfGroup returns the run times that the scheduler can rely on. activeDeadlineSeconds is a limit of the run
// time, too: it counts from the job's start, which is before the members run.
func (d *decision) runtimesOfGroup() podgroup.Runtimes {
	runtimes, _ := d.runtimes()
	if seconds := d.Job.Spec.RunPolicy.ActiveDeadlineSeconds; seconds != nil && *seconds > 0 {
		runtimes.Max = podgroup.Smaller(runtimes.Max, ptr.To(int32(min(*seconds, schedulingv1alpha1.MaxRuntimeSeconds))))
	}
	return runtimes.InForce(d.next.RuntimeLimit)
}

// overRuntime returns a message if the job has reached its run-time limit; otherwise "", and the next round is
// scheduled for when the limit is reached. The limit ends the job only if the time from which it counts was written.
func (d *decision) overRuntime() string {
	runtimes, _ := d.runtimes()
	d.next.RuntimeLimit = podgroup.CountRuntime(d.next.RuntimeLimit, runtimes.Max, d.enoughRun(), d.now)
	limit := d.next.RuntimeLimit
	if limit == nil || d.Persisted == nil || !podgroup.SameLimit(limit, d.Persisted.RuntimeLimit) {
		return ""
	}
	span := time.Duration(limit.Seconds) * time.Second
	if due := d.since(limit.Since).Add(span); d.clock.Before(due) {
		d.WakeAt(due)
		return ""
	}
	if !d.WasListed(KindPod) {
		d.lists = append(d.lists, KindPod) // the Pods may have ended in time, and the cache may not show that yet
		return ""
	}
	return fmt.Sprintf("%sthe job ran for %v, which is its limit", limitReached, span)
}

// enoughRun reports whether the minimum of the gang runs or has succeeded. For a job without a gang, one Pod is enough.
func (d *decision) enoughRun() bool {
	gang, active := d.isGang(), int32(0)
	for _, r := range d.replicas {
		if gang && !r.member {
			continue
		}
		active += r.succeeded()
		for _, pod := range r.pods {
			if runs(pod) {
				active++
			}
		}
	}
	return active > 0 && (!gang || active >= d.builder.leastMembers())
}
