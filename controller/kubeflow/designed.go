// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// followDesign decides the phase and the conditions of a TFJob of v1alpha2. Such a job ends when all of its Pods have
// ended, including parameter servers.
func (d *decision) followDesign() {
	if d.invalid != "" {
		if !d.everBegan() {
			d.setDesigned(kubeflowv1.JobConditionFailed, corev1.ConditionTrue, "Failed", d.invalidity())
			d.next.Phase, d.next.CompletionTime = kubeflowv1.JobFailed, &d.now
			d.Persist(plan.PersistNow)
		}
		return
	}
	d.followReconciler()
	view := d.designedView()
	if view.exists {
		d.setDesigned(kubeflowv1.JobConditionCreated, corev1.ConditionTrue, "Created", "All Pods and Services exist")
	}
	if len(d.memory.Awaited) == 0 && is(d.next, kubeflowv1.JobConditionRestarting) {
		d.setDesigned(kubeflowv1.JobConditionRestarting, corev1.ConditionFalse, "Restarted", "All replaced Pods are running")
	}
	d.next.Phase = d.designedPhase(view)
	running := condition(d.next, kubeflowv1.JobConditionRunning)
	switch d.next.Phase {
	case kubeflowv1.JobRunning:
		d.setDesigned(kubeflowv1.JobConditionRunning, corev1.ConditionTrue, "Running", "All Pods run or have succeeded")
	case kubeflowv1.JobUnknown:
		if running != nil {
			d.setDesigned(kubeflowv1.JobConditionRunning, corev1.ConditionUnknown, "NodeLost", "The node of a Pod does not answer")
		}
	case kubeflowv1.JobSucceeded, kubeflowv1.JobFailed:
		d.next.CompletionTime = &d.now
		d.Persist(plan.PersistNow)
		fallthrough
	default:
		if running != nil {
			d.setDesigned(kubeflowv1.JobConditionRunning, corev1.ConditionFalse, "NotRunning", "Not all Pods run")
		}
	}
	// The most interesting condition comes last.
	if d.restarting != "" {
		d.setDesigned(kubeflowv1.JobConditionRestarting, corev1.ConditionTrue, "Restarting", d.restarting)
	}
	if view.failed {
		d.setDesigned(kubeflowv1.JobConditionFailed, corev1.ConditionTrue, "Failed", cmp.Or(d.failure, "A Pod has failed"))
	}
}

// setDesigned sets a condition, and records an event for True.
func (d *decision) setDesigned(t kubeflowv1.JobConditionType, status corev1.ConditionStatus, reason, message string) {
	if d.set(t, status, d.kind.reason(reason), message) && status == corev1.ConditionTrue {
		d.Tell(t == kubeflowv1.JobConditionFailed, d.kind.reason(string(t)), "%s", message)
	}
}

// designedView is what there is of a job of v1alpha2, over all types.
type designedView struct {
	// exists: all Pods and Services exist. launched: all Pods run or have ended. ended: all Pods have ended.
	exists, launched, ended bool
	// runs, failed and lost say that a Pod does, has, is.
	runs, failed, lost bool
}

func (d *decision) designedView() designedView {
	v := designedView{exists: true, launched: true, ended: true}
	for _, r := range d.replicas {
		v.failed = v.failed || r.failed() > 0
		for index := range r.number {
			pod, ended := r.pods[index], r.record.ended(index)
			v.exists = v.exists && (r.services[index] != nil && (ended || pod != nil) || ended && pod == nil)
			v.launched = v.launched && (ended || runs(pod))
			v.ended = v.ended && ended
			v.runs = v.runs || !ended && runs(pod)
			v.lost = v.lost || pod != nil && !ended && (pod.Status.Phase == corev1.PodUnknown || pod.Status.Reason == "NodeLost")
		}
	}
	v.ended = v.ended && d.allPodsHaveEnded()
	return v
}

// allPodsHaveEnded reports whether no Pod may run any more. Pods that were scaled away, and Pods of other starts, count
// too.
func (d *decision) allPodsHaveEnded() bool {
	for _, r := range d.replicas {
		for _, pod := range slices.Concat(slices.Collect(maps.Values(r.pods)), r.old) {
			if !jobpods.HasEnded(pod) {
				return false
			}
		}
	}
	return true
}

// designedPhase returns the phase of a job of v1alpha2. A job with a failed Pod keeps its phase until all Pods have
// ended.
func (d *decision) designedPhase(v designedView) kubeflowv1.JobPhase {
	switch {
	case v.ended && v.failed:
		return kubeflowv1.JobFailed
	case v.ended:
		return kubeflowv1.JobSucceeded
	case v.lost:
		return kubeflowv1.JobUnknown
	case v.exists && v.launched && v.runs && (!v.failed || d.next.Phase == kubeflowv1.JobRunning || d.next.Phase == kubeflowv1.JobUnknown):
		return kubeflowv1.JobRunning
	default:
		return kubeflowv1.JobPending
	}
}
