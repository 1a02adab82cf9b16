// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"time"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// Kept returns what the API server stores of a status, given a status that it has stored. Another product's CRD may
// drop all fields that Lockstep adds. Every status of this package has a phase, so if the stored status has none,
// fields were dropped.
func Kept(status, stored *kubeflowv1.JobStatus) *kubeflowv1.JobStatus {
	if stored.Phase != "" {
		return status
	}
	kept := *status
	kept.Phase, kept.Starts, kept.Services, kept.TFReplicaStatuses = "", 0, "", nil
	if status.ReplicaStatuses != nil {
		kept.ReplicaStatuses = map[string]kubeflowv1.ReplicaStatus{}
	}
	for name, s := range status.ReplicaStatuses {
		kept.ReplicaStatuses[name] = kubeflowv1.ReplicaStatus{Active: s.Active, Succeeded: s.Succeeded, Failed: s.Failed, Selector: s.Selector}
	}
	return &kept
}

// checkCRD stops the decision about a job if the installed CRD does not keep the whole status, unless the
// configuration allows that. Otherwise a crash of the controller would lose restart counts, and the results of Pods
// that are gone. A job that has begun, or ended, continues as well as possible.
func (d *decision) checkCRD() (goOn bool) {
	if d.remembers() || d.Kept != plan.KeptInPart {
		return true
	}
	d.WarnOnce("ForeignCRD", "The CRD of the kind %s is not Lockstep's, and does not keep all of the status: the job is left alone. "+
		"Install Lockstep's, or have jobs of this CRD run by the option foreignCRDs", d.Job.Kind)
	d.leave, d.Plan.Persist = true, plan.PersistNone
	d.lookAgain()
	return false
}

// crdLook schedules the next check whether Lockstep's CRD has replaced another project's CRD.
type crdLook struct {
	after time.Duration
	due   time.Time
}

// firstCRDLook and lastCRDLook are the shortest and the longest time between two checks whether the CRD was replaced,
// which no event shows.
const firstCRDLook, lastCRDLook = time.Second, 5 * time.Minute

// lookAgain checks, at growing intervals, whether the CRD now keeps every field of the status. For that it writes the
// whole status and reads it back.
func (d *decision) lookAgain() {
	look := d.Memory.crd
	if !look.due.IsZero() && !d.clock.Before(look.due) {
		d.Persist(plan.PersistNow)
		d.CheckStatus("")
	}
	if !d.clock.Before(look.due) {
		look.after = min(max(2*look.after, firstCRDLook), lastCRDLook)
		look.due = d.turnAfter(d.clock, look.after)
	}
	d.memory.crd = look
	d.WakeAt(look.due)
}

// remembers reports whether the controller can do without the part of the status that the CRD drops.
func (d *decision) remembers() bool {
	return d.Options.ForeignCRDs || isFinished(d.next) || len(d.Pods)+len(d.Services) > 0
}

// isKept reports whether the API server stores the whole status. If that is not known, isKept plans a live read before
// anything is created. A status without fields that could be dropped proves nothing, so another status is written
// first.
func (d *decision) isKept() bool {
	switch {
	case d.remembers() || d.Kept != plan.KeptUnknown:
		return true
	case d.Persisted.Phase == "":
		d.Persist(plan.PersistNow)
	default:
		d.CheckStatus("")
	}
	return false
}
