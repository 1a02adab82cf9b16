// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// limitReached begins the message about a job that a limit has ended. The Pods of such a job are deleted, whatever
// cleanPodPolicy says.
const limitReached = "Limit reached: "

// endedByLimit reports whether a limit has ended the job.
func (d *decision) endedByLimit() bool {
	c := condition(d.next, kubeflowv1.JobConditionFailed)
	return c != nil && strings.HasPrefix(c.Message, limitReached)
}

// overLimit returns the limit that the job has reached; "" for none. If a limit is still ahead, it schedules another
// round for that time.
func (d *decision) overLimit() string {
	policy := &d.Job.Spec.RunPolicy
	if seconds := policy.ActiveDeadlineSeconds; seconds != nil && *seconds >= 0 && d.next.StartTime != nil {
		due := d.since(*d.next.StartTime).Add(time.Duration(min(*seconds, maxDeadlineSeconds)) * time.Second)
		if !d.clock.Before(due) {
			return fmt.Sprintf("%sthe job was active longer than activeDeadlineSeconds (%ds)", limitReached, *seconds)
		}
		d.WakeAt(due)
	}
	if why := d.overRuntime(); why != "" {
		return why
	}
	if d.kind.launches {
		return d.overTries()
	}
	if limit := policy.BackoffLimit; limit != nil {
		if n := d.failedPods(); n > 0 && *limit == 0 {
			return fmt.Sprintf("%s%d Pods have failed, backoffLimit is 0", limitReached, n)
		}
		if n := d.allRestarts(); n > 0 && n >= int64(*limit) {
			return fmt.Sprintf("%s%d restarts, backoffLimit is %d", limitReached, n, *limit)
		}
	}
	return ""
}

// failedPods returns the number of indexes that have failed for good, of all types. Indexes of elastic workers do not
// count, because their failures alone do not fail the job.
func (d *decision) failedPods() int32 {
	sum := int32(0)
	for _, r := range d.replicas {
		sum += r.failed()
	}
	return sum
}

// allRestarts returns how often containers were restarted: in Pods that have not ended, and as recorded in the status.
// Restarts of init containers of Pending Pods count too. Types whose Pods are never restarted have none.
func (d *decision) allRestarts() int64 {
	sum := int64(0)
	for _, r := range d.replicas {
		if r.policy == kubeflowv1.RestartNever {
			continue
		}
		sum += int64(r.record.restarts)
		for index, pod := range r.pods {
			if !jobpods.HasEnded(pod) && !r.record.restarting.Has(index) && !r.record.ended(index) {
				sum += int64(jobpods.Restarts(pod))
			}
		}
	}
	return sum
}

// planRetention deletes a job that has ended for as long as it says.
func (d *decision) planRetention() {
	ttl := d.Job.Spec.RunPolicy.TTLSecondsAfterFinished
	if ttl == nil || d.invalid != "" || d.kind.designed || d.next.CompletionTime == nil {
		return
	}
	if d.deleteJob(d.since(*d.next.CompletionTime), *ttl) {
		d.Once(false, "SuccessfulDeleteJob", "Deleted: finished more than ttlSecondsAfterFinished (%ds) ago", *ttl)
	}
}

// deleteJob deletes the job the given number of seconds after its end, and reports whether the deletion is planned
// now.
func (d *decision) deleteJob(ended time.Time, seconds int32) bool {
	deletion := jobpods.Deletion(d.kind.gvk.Kind, d.Job)
	deletion.Version = d.Version
	return d.DeleteOwner(ended.Add(time.Duration(max(0, seconds))*time.Second), deletion)
}

// since converts a time in the status to this controller's clock. If the time is in the future, the controller that
// wrote it had a clock that is ahead. In that case the result is when this controller first saw the time, so that
// delays are not prolonged.
func (d *decision) since(at metav1.Time) time.Time {
	seen, ahead := d.Memory.ahead[at.Unix()]
	if !ahead && !at.After(d.clock) {
		return at.Time
	}
	if !ahead {
		seen = d.clock
	}
	if d.memory.ahead == nil {
		d.memory.ahead = map[int64]time.Time{}
	}
	d.memory.ahead[at.Unix()] = seen
	return seen
}
