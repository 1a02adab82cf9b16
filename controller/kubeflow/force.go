// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// KeyForceDeletion is an annotation that users set on a job. Its value is the number of seconds, from 0 to 2147483647,
// after which a Pod that is being deleted is deleted by force. Without the annotation, Pods on a dead node stay until
// an administrator confirms that the node is dead: no controller can know.
const KeyForceDeletion = "kubeflow.lockstep.dev/pod-graceful-deletion-timeout-seconds"

// readForceDeletion reads the annotation. An invalid value has no effect and causes a warning.
func (r *reading) readForceDeletion() {
	written, isThere := r.job.Annotations[KeyForceDeletion]
	if !isThere {
		return
	}
	seconds, err := strconv.ParseInt(written, 10, 32)
	if err != nil || seconds < 0 {
		r.warn("InvalidAnnotation", "metadata.annotations["+KeyForceDeletion+"] must be a number of seconds from 0 to 2147483647: it has no effect")
		return
	}
	after := time.Duration(seconds) * time.Second
	r.forceAfter = &after
}

// planForce deletes Pods by force if their deletion takes longer than the user allows, by the controller's own clock.
func (d *decision) planForce() {
	if d.forceAfter == nil {
		return
	}
	for _, name := range jobpods.SortedKeys(d.Pods) {
		pod := d.Pods[name]
		if pod.DeletionTimestamp == nil || d.isGone(pod.UID) || d.awaitsRecord(pod) {
			continue
		}
		since, isKnown := d.Terminating[pod.UID]
		if !isKnown {
			since = d.clock
		}
		if due := since.Add(*d.forceAfter); d.clock.Before(due) {
			d.WakeAt(due)
			continue
		}
		d.Act(plan.Action{Verb: plan.ForceDelete, Kind: KindPod, Name: pod.Name, UID: pod.UID})
	}
}

// awaitsRecord reports whether something about a Pod's index still has to be written into the status, because a new
// controller could not find it out once the Pod is gone.
func (d *decision) awaitsRecord(pod *corev1.Pod) bool {
	r, index := d.placeOf(pod)
	if r == nil || int(index) >= len(r.record.restarting) ||
		r.record.ended(index) == r.persisted.ended(index) && r.record.restarting.Has(index) == r.persisted.restarting.Has(index) {
		return false
	}
	d.Persist(plan.PersistSoon)
	return true
}

// isGone reports whether an object is certainly gone that a cache may still show.
func (d *decision) isGone(uid types.UID) bool { return d.Gone[uid] || d.Forced[uid] }
