// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// followOutcome decides whether a v1 job runs, and whether it has ended. Success is checked before failure, so that a
// job never has both.
func (d *decision) followOutcome() {
	d.count()
	if d.invalid == "" {
		deciders := d.deciders()
		active := slices.ContainsFunc(deciders, func(r *replicas) bool { return r.counts.active > 0 })
		if d.kind.launches {
			active = d.allRun()
		}
		switch {
		case d.restarting != "":
			d.enter(kubeflowv1.JobConditionRestarting, d.restarting)
		case active && (len(d.memory.Awaited) == 0 || !is(d.next, kubeflowv1.JobConditionRestarting)):
			d.enter(kubeflowv1.JobConditionRunning, d.named()+" is running.")
		}
		if why := d.success(deciders); why != "" {
			d.end(kubeflowv1.JobConditionSucceeded, why)
			return
		}
		if why := d.failed(deciders); why != "" {
			d.end(kubeflowv1.JobConditionFailed, why)
			return
		}
	} else if !d.everBegan() {
		d.end(kubeflowv1.JobConditionFailed, d.invalidity())
		return
	}
	if why := d.overLimit(); why != "" {
		d.end(kubeflowv1.JobConditionFailed, why)
		return
	}
	d.next.Phase = kubeflowv1.JobPending
	if is(d.next, kubeflowv1.JobConditionRunning) {
		d.next.Phase = kubeflowv1.JobRunning
	}
}

// end ends a job.
func (d *decision) end(how kubeflowv1.JobConditionType, why string) {
	reason := string(how)
	if how == kubeflowv1.JobConditionFailed && why == d.evicted {
		reason = "Evicted"
	}
	d.enterFor(how, reason, why)
	d.next.Phase = kubeflowv1.JobSucceeded
	if how == kubeflowv1.JobConditionFailed {
		d.next.Phase = kubeflowv1.JobFailed
	}
	d.next.CompletionTime = &d.now
	d.Persist(plan.PersistNow)
}

// everBegan reports whether the job was ever begun with a valid spec: objects of the job exist or existed, or the
// status has a start. A job fails if its spec is invalid from the beginning. A job that runs already, or waits for a
// quota or a name, goes on when its spec becomes invalid, so that the user can correct the edit.
func (d *decision) everBegan() bool {
	if d.next.Starts > 1 || d.Persisted != nil && d.Persisted.StartTime != nil {
		return true
	}
	for _, r := range d.replicas {
		if r.record.completed.Count()+r.record.failed.Count()+r.record.restarting.Count()+r.record.restarts > 0 {
			return true
		}
	}
	return len(d.Pods)+len(d.Services) > 0
}

// invalidity returns why a job with an invalid spec fails.
func (d *decision) invalidity() string { return "Invalid spec: " + d.invalid }

// deciders returns the types whose Pods decide whether the job runs and succeeds: the leading type. If the job has no
// such type, the workers decide. If it has no workers, all types decide.
func (d *decision) deciders() []*replicas {
	for _, names := range [][]string{d.kind.leaders, {kubeflowv1.ReplicaWorker}} {
		for _, r := range d.replicas {
			if r.number > 0 && slices.Contains(names, r.name) {
				return []*replicas{r}
			}
		}
	}
	return d.replicas
}

// success returns why the job succeeds. Empty if it does not yet.
func (d *decision) success(deciders []*replicas) string {
	decides := deciders[0]
	onlyWorkers := len(deciders) == 1 && decides.name == kubeflowv1.ReplicaWorker
	switch {
	case onlyWorkers && d.kind.anyWorkerEnds && d.Job.Spec.ElasticPolicy != nil && decides.succeeded() > 0:
		return "A worker has succeeded"
	case onlyWorkers && d.kind == tfJob && d.Job.Spec.SuccessPolicy == kubeflowv1.SuccessPolicyDefault && d.workerHasExited(decides):
		return "Worker 0 has succeeded"
	}
	some := false
	for _, r := range deciders {
		if r.number > 0 && !r.allSucceeded() {
			return ""
		}
		some = some || r.number > 0
	}
	if !some {
		return ""
	}
	return fmt.Sprintf("All replicas of %s have succeeded", decides.name)
}

// workerHasExited reports whether worker 0 has succeeded, judged by the container that trains.
func (d *decision) workerHasExited(workers *replicas) bool {
	pod := workers.pods[0]
	if pod == nil || pod.Status.Phase != corev1.PodSucceeded || !workers.record.completed.Has(0) {
		return false
	}
	return d.trainedWell(pod)
}

// failed returns why the job fails; "" if it does not. The types that decide about the job are checked first.
func (d *decision) failed(deciders []*replicas) string {
	if d.failure != "" && d.refused {
		return d.failure
	}
	for _, r := range d.replicas {
		n := r.failed()
		switch {
		case n == 0:
		case d.kind.launches && !r.launches:
			if d.evicted != "" {
				return d.evicted
			}
		case d.kind == tfJob && d.Job.Spec.EnableDynamicWorker && r.name == kubeflowv1.ReplicaWorker:
			ended := n + r.succeeded()
			if n >= r.number || ended >= r.number && slices.Contains(deciders, r) {
				return "All workers have ended, and not all have succeeded"
			}
		case d.failure != "":
			return d.failure
		default:
			return fmt.Sprintf("%d replicas of %s have failed", n, r.name)
		}
	}
	return ""
}

// followRefusals records that the API server will never accept some objects. A job of v1 then fails; in v1alpha2 only
// these indexes fail. Objects of one template are refused together, and one event reports all of them.
func (d *decision) followRefusals() {
	refused, why := map[string][]string{}, map[string]error{}
	for _, outcome := range d.Outcomes {
		action := outcome.Action
		if outcome.Refused == nil || action.Verb != plan.Create || !d.isPodGone(action.Name) {
			continue // The Service of a Pod that is there is tried again.
		}
		refused[action.Kind], why[action.Kind] = append(refused[action.Kind], action.Name), outcome.Refused
		if t, index := d.kind.placeNamed(d.Job, action.Name); t != "" && d.kind.designed {
			d.replicasOf(t).record.failed.Set(index, true)
			d.Persist(plan.PersistSoon)
		}
	}
	for _, kind := range jobpods.SortedKeys(refused) {
		d.refused = true
		d.failure = fmt.Sprintf("%s %s can never be created: %v", kind, listed(refused[kind]), why[kind])
		d.Tell(true, "FailedCreate"+kind, "%s", d.failure)
	}
}

// followRest notes what becomes of Pods that run on after their job has ended.
func (d *decision) followRest() {
	d.eachPod(func(r *replicas, index int32, pod *corev1.Pod) {
		if pod.DeletionTimestamp != nil || r.record.ended(index) || r.record.restarting.Has(index) || d.Deleted[pod.UID] {
			return
		}
		switch pod.Status.Phase {
		case corev1.PodSucceeded:
			r.record.completed.Set(index, true)
		case corev1.PodFailed:
			r.record.failed.Set(index, true)
		}
	})
}
