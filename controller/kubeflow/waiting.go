// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deletionPatience is how long the deletion of an object may take, beside the time that a Pod has to
// end, before the user hears that the job waits for it.
const deletionPatience = time.Minute

// tellOfDeletions warns of objects of the job whose deletion does not end, because of a finalizer
// that nobody takes away, or of a node that is dead: nothing takes their place before they are gone.
// Of each kind the first is named.
func (d *decision) tellOfDeletions() {
	if isFinished(d.next) {
		return
	}
	tellOfDeletionsOf(d, KindPod, d.Pods)
	tellOfDeletionsOf(d, KindService, d.Services)
	tellOfDeletionsOf(d, KindPodGroup, d.PodGroups)
}

func tellOfDeletionsOf[O metav1.Object](d *decision, kind string, objects map[string]O) {
	overdue := ""
	for name, object := range objects {
		if object.GetDeletionTimestamp() == nil || d.isGone(object.GetUID()) {
			continue
		}
		since, isKnown := d.Terminating[object.GetUID()]
		if !isKnown {
			since = d.clock
		}
		due := since.Add(graceOf(object) + deletionPatience)
		if d.clock.Before(due) {
			d.wakeAt(due)
		} else if overdue == "" || name < overdue {
			overdue = name
		}
	}
	if overdue != "" {
		d.warnOnce("Waiting", "%s %s is being deleted, and is still there: a finalizer holds it, or its node does not answer. The job waits for it", kind, overdue)
	}
}

// graceOf is how long an object may take to end, once its deletion was asked for.
func graceOf(object metav1.Object) time.Duration {
	grace := object.GetDeletionGracePeriodSeconds()
	if grace == nil {
		return 0
	}
	return time.Duration(min(max(0, *grace), maxDeadlineSeconds)) * time.Second
}
