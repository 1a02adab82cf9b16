// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// planRetention deletes a finished Job after its time to live. An aborted Job stays.
func (d *decision) planRetention() {
	ttl := d.spec.TTLSecondsAfterFinished
	if !isFinal(d.next.State.Phase) || ttl == nil || d.invalid != "" {
		return
	}
	deletion := jobpods.Deletion(KindJob, d.Job)
	deletion.Propagation = metav1.DeletePropagationForeground
	d.DeleteOwner(d.sinceOnRecord(d.next.State.LastTransitionTime).Add(time.Duration(*ttl)*time.Second), deletion)
}
