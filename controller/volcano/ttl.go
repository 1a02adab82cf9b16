// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// planRetention deletes a Job that has been finished for as long as it says. One that was
// aborted stays.
func (d *decision) planRetention() {
	ttl := d.spec.TTLSecondsAfterFinished
	if !isFinal(d.next.State.Phase) || ttl == nil || d.invalid != "" || d.Deleted[d.Job.UID] {
		return
	}
	if due := d.sinceOnRecord(d.next.State.LastTransitionTime).Add(time.Duration(*ttl) * time.Second); d.clock.Before(due) {
		d.wakeAt(due)
		return
	}
	if !d.Checked[d.Job.UID] {
		d.checkStatus(d.Job.UID)
		return
	}
	d.act(plan.Action{
		Verb: plan.Delete, Kind: KindJob, Name: d.Job.Name, UID: d.Job.UID,
		Propagation: metav1.DeletePropagationForeground,
	})
}
