// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
	"github.com/lockstep-k8s/lockstep/internal/podend"
)

// followPods records what has happened to the Pods of a running job: which have ended for good, and which are to be
// replaced.
//
// A record is dropped only once it was persisted. After a write with an uncertain result the API server may have the
// record. If the status returned to its earlier value before that, nothing would be written, and the next controller
// would act on the outdated record.
func (d *decision) followPods() (goOn bool) {
	if d.invalid != "" { // What a spec says that makes no sense takes no Pods.
		d.followSuccesses()
		return true
	}
	for _, r := range d.replicas {
		for index := range r.reach {
			pod := r.pods[index]
			switch {
			case pod == nil && r.record.restarting.Has(index):
				// It is gone, and was counted.
				r.record.restarting.Set(index, !r.persisted.restarting.Has(index))
				d.Persist(plan.PersistSoon)
			case pod == nil && index >= r.number && r.record.ended(index):
				if r.persisted.ended(index) {
					r.record.completed.Set(index, false)
					r.record.failed.Set(index, false)
				}
				d.Persist(plan.PersistSoon)
			case pod == nil, r.record.restarting.Has(index):
			case index >= r.number:
				d.release(r, index, pod, 0) // It is scaled away.
			case r.record.ended(index):
			case jobpods.EndedForGood(pod):
				d.noteEnd(r, index, pod)
			case jobpods.IsBeingDeleted(pod):
				d.release(r, index, pod, 0) // Somebody else deletes it.
				if hasRun(pod) && !d.kind.designed {
					d.restart(pod, "Pod "+pod.Name+" "+d.verdict(pod).String())
				}
			}
		}
	}
	return true
}

// followSuccesses records which Pods have succeeded while the job's spec is invalid. What failed Pods mean is decided
// once the spec is corrected.
func (d *decision) followSuccesses() {
	d.eachPod(func(r *replicas, index int32, pod *corev1.Pod) {
		if pod.Status.Phase == corev1.PodSucceeded && !r.record.ended(index) && !r.record.restarting.Has(index) {
			r.record.completed.Set(index, true)
			r.record.add(jobpods.Restarts(pod)) // They don't count if the type turns out to have none.
			d.Persist(plan.PersistSoon)
		}
	})
}

// noteEnd records that a Pod has ended, for good or to be recreated.
func (d *decision) noteEnd(r *replicas, index int32, pod *corev1.Pod) {
	if pod.Status.Phase == corev1.PodSucceeded {
		r.record.completed.Set(index, true)
		r.count(jobpods.Restarts(pod))
		d.Persist(plan.PersistSoon)
		return
	}
	verdict := d.verdict(pod)
	how := verdict.String()
	d.exited[how] = append(d.exited[how], pod.Name)
	if d.isMadeAnew(r, pod) {
		d.release(r, index, pod, failuresOf(verdict))
		d.restart(pod, "Pod "+pod.Name+" "+how)
		return
	}
	r.record.failed.Set(index, true)
	r.count(jobpods.Restarts(pod))
	d.Persist(plan.PersistSoon)
	if d.kind.launches && !r.launches {
		d.noteLostWorker(pod)
		return
	}
	if d.failure == "" {
		d.failure = "Pod " + pod.Name + " " + how
	}
}

// shownWays is how many ways in which Pods have failed are reported separately.
const shownWays = 5

// tellOfExits reports the Pods that have failed. Pods that failed in the same way are one event. The number of events
// of a job is bounded, and events about its end come first.
func (d *decision) tellOfExits() {
	ways := jobpods.SortedKeys(d.exited)
	for _, how := range ways[:min(shownWays, len(ways))] {
		d.tellOfExit(d.exited[how], how)
	}
	var others []string
	for _, how := range ways[min(shownWays, len(ways)):] {
		others = append(others, d.exited[how]...)
	}
	d.tellOfExit(others, "has failed in another way")
}

func (d *decision) tellOfExit(pods []string, how string) {
	switch len(pods) {
	case 0:
	case 1:
		d.Tell(true, "ExitedWithCode", "Pod %s %s", pods[0], how)
	default:
		d.Tell(true, "ExitedWithCode", "Pods %s: each %s", listed(pods), how)
	}
}

// isMadeAnew reports whether another Pod takes the place of a failed one.
func (d *decision) isMadeAnew(r *replicas, pod *corev1.Pod) bool {
	if d.kind.launches {
		return d.isLaunchedAnew(r, pod)
	}
	switch r.policy {
	case kubeflowv1.RestartAlways, kubeflowv1.RestartOnFailure:
		return true
	case kubeflowv1.RestartExitCode:
		return d.mayPassByAnotherTry(pod)
	default:
		return false
	}
}

// firstRetryableCode is the lowest exit code of programs that a signal has ended. For codes from here on, another try
// may succeed.
const firstRetryableCode = 128

// mayPassByAnotherTry reports whether another try may succeed: the cluster has ended the Pod, a signal has ended the
// program, or the cause is unknown.
func (d *decision) mayPassByAnotherTry(pod *corev1.Pod) bool {
	verdict := d.verdict(pod)
	code, known := verdict.ExitCode()
	return verdict.ByCluster() || verdict.Cause != podend.CauseDeadline && (!known || code >= firstRetryableCode)
}

// verdict returns how a Pod has ended. If the container that trains has failed, its exit code counts; otherwise that of
// the container that failed last.
func (d *decision) verdict(pod *corev1.Pod) podend.Verdict {
	if len(pod.Spec.Containers) == 0 {
		return podend.Of(pod) // Nobody could run such a Pod.
	}
	return podend.OfMain(pod, d.kind.mainContainer(&pod.Spec).Name)
}

// trainedWell reports whether the container that trains is known to have exited with 0.
func (d *decision) trainedWell(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) > 0 && slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
		ended := status.State.Terminated
		return status.Name == d.kind.mainContainer(&pod.Spec).Name && ended != nil && ended.ExitCode == 0
	})
}

// failuresOf returns by how much the end of a Pod that is replaced counts against backoffLimit. It is 0 if the Pod's
// node was lost, shut down or drained, or if a scheduler preempted the Pod.
func failuresOf(verdict podend.Verdict) int32 {
	if verdict.ByCluster() && verdict.Cause != podend.CauseEvicted && verdict.Cause != podend.CauseRefused {
		return 0
	}
	return 1
}

// release notes that a Pod goes, and counts what it had, in one write.
func (d *decision) release(r *replicas, index int32, pod *corev1.Pod, failures int32) {
	if !r.record.ended(index) {
		r.count(jobpods.Restarts(pod) + failures)
	}
	r.record.completed.Set(index, false)
	r.record.failed.Set(index, false)
	r.record.restarting.Set(index, true)
	d.Persist(plan.PersistSoon)
}

// count counts restarts of a type with Pods that may be restarted.
func (r *replicas) count(restarts int32) {
	if r.policy != kubeflowv1.RestartNever || r.launches {
		r.record.add(restarts)
	}
}

// restart reports that a Pod is recreated, until the new one runs.
func (d *decision) restart(pod *corev1.Pod, why string) {
	d.awaitRun(pod.Name)
	d.restarting = why
}

// awaitRun waits for the Pod of a name to run.
func (d *decision) awaitRun(name string) {
	if d.memory.Awaited == nil {
		d.memory.Awaited = map[string]bool{}
	}
	d.memory.Awaited[name] = true
}

// followReplacements removes indexes from the list of awaited indexes once their new Pod runs. A controller that has
// just started has no list: while the job is Restarting, it waits for every Pod that does not run. goOn is false if the
// round ends here.
func (d *decision) followReplacements() (goOn bool) {
	known := d.Memory.Awaited != nil
	under := is(d.next, kubeflowv1.JobConditionRestarting)
	for _, r := range d.replicas {
		for index := range r.number {
			pod, name := r.pods[index], d.kind.objectName(d.Job, r.name, index)
			waits := !r.record.ended(index) && (r.record.restarting.Has(index) || !runs(pod))
			if waits && (d.Memory.Awaited[name] || !known && under) {
				d.awaitRun(name)
			}
		}
	}
	if d.memory.Awaited == nil {
		d.memory.Awaited = map[string]bool{}
	}
	return true
}
