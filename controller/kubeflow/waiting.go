// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// tellOfDeletions warns of objects that still exist long after a deletion was requested, because of a finalizer or a
// dead node. Such an object is not replaced before it is gone. tellOfDeletions names the first object of each kind.
func (d *decision) tellOfDeletions() {
	if isFinished(d.next) {
		return
	}
	tellOfDeletionsOf(d, KindPod, d.Pods)
	tellOfDeletionsOf(d, KindService, d.Services)
	tellOfDeletionsOf(d, KindPodGroup, d.PodGroups)
}

func tellOfDeletionsOf[O metav1.Object](d *decision, kind string, objects map[string]O) {
	since := func(object O) (time.Time, bool) {
		if object.GetDeletionTimestamp() == nil || d.isGone(object.GetUID()) {
			return time.Time{}, false
		}
		if seen, isKnown := d.Terminating[object.GetUID()]; isKnown {
			return seen, true
		}
		return d.clock, true
	}
	overdue, next := podend.FirstOverdue(kind, objects, since, d.clock)
	d.WakeAt(next)
	if overdue != "" {
		d.WarnOnce("Waiting", "%s. The job waits for it", overdue)
	}
}
