// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

// wantsSuspension reports whether a user or Kueue has set runPolicy.suspend. A TFJob of v1alpha2 ignores the other
// settings of runPolicy, except managedBy, but not this one: a suspended job must free its room for other jobs.
func (d *decision) wantsSuspension() bool { return ptr.Deref(d.Job.Spec.RunPolicy.Suspend, false) }

// followSuspension suspends a job that has not ended, and resumes it. A resumed job starts again with all Pods, from
// the templates at that time.
func (d *decision) followSuspension() (goOn bool) {
	suspended := is(d.next, kubeflowv1.JobConditionSuspended)
	switch {
	case isFinished(d.next):
	case d.wantsSuspension() && !suspended:
		if condition(d.next, kubeflowv1.JobConditionRunning) != nil {
			d.set(kubeflowv1.JobConditionRunning, corev1.ConditionFalse, d.kind.reason("Suspended"), "The job is suspended")
		}
		d.drop(kubeflowv1.JobConditionRestarting)
		if d.kind.designed { // They are about Pods that are not there any more.
			d.drop(kubeflowv1.JobConditionCreated)
			d.drop(kubeflowv1.JobConditionFailed)
		}
		d.enter(kubeflowv1.JobConditionSuspended, "The job is suspended: it has no Pods until it is resumed")
		d.next.Phase = kubeflowv1.JobPending
		d.forget()
		d.Persist(plan.PersistNow)
	case !d.wantsSuspension() && suspended:
		d.set(kubeflowv1.JobConditionSuspended, corev1.ConditionFalse, d.kind.reason("Resumed"), "The job was resumed")
		d.Tell(false, d.kind.reason("Resumed"), "The job was resumed")
		for _, r := range d.replicas {
			for _, pod := range r.pods {
				d.old = append(d.old, pod)
			}
			clear(r.pods)
		}
		d.forget()
		d.begin()
	}
	return true
}

// forget forgets what has become of the Pods.
func (d *decision) forget() {
	for _, r := range d.replicas {
		r.record.clear()
	}
	d.memory.Awaited = map[string]bool{}
}
