// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"time"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

const (
	// firstDistance is the least time between the starts of a Job's last two runs, after the second restart. Each
	// further restart doubles it.
	firstDistance = time.Second
	// longestDistance is the longest time between the starts of two runs, for a restart that creates at most
	// restartsPerMinute Pods. If it creates more, the time grows in proportion, so that no Job creates more Pods per
	// minute in the long run.
	longestDistance   = time.Minute
	restartsPerMinute = 200
)

// distance returns the least time between the starts of a Job's last two runs. restarts is how often the Job was
// restarted, and pods how many Pods the last restart creates.
func distance(restarts, pods int32) time.Duration {
	if restarts < 2 {
		return 0
	}
	longest := max(longestDistance, time.Duration(pods)*longestDistance/restartsPerMinute)
	return min(firstDistance<<min(restarts-2, 30), longest)
}

// nextRun returns when a restarted Job may run again. Zero means at once: the last run lasted long enough, or a user
// requested the restart. The time depends only on the status, so another controller computes the same.
func (d *decision) nextRun() time.Time {
	if commandOnRecord(d.next.State) != "" {
		return time.Time{}
	}
	for _, c := range d.next.Conditions {
		if c.Status == batchv1alpha1.JobPending && !c.LastTransitionTime.IsZero() {
			return d.sinceOnRecord(c.LastTransitionTime).Add(distance(d.next.RetryCount, d.madeAnew()))
		}
	}
	return time.Time{}
}

// madeAnew returns how many Pods the restart that is under way makes.
func (d *decision) madeAnew() int32 {
	part, isPart := d.targetOnRecord()
	if !isPart {
		return d.replicas()
	}
	pods := int32(0)
	for _, t := range d.tasks {
		for index := range t.spec.Replicas {
			if part.has(t, index) || t.record.joined.Has(index) {
				pods++
			}
		}
	}
	return pods
}
