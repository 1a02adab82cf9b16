// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// planActions derives the actions from the persisted parts of the status.
func (d *decision) planActions() {
	d.planForce()
	switch {
	case is(d.next, kubeflowv1.JobConditionSuspended) && !isFinished(d.next):
		d.planRemoval()
	case isFinished(d.next) && d.kind.designed:
		d.planGangRemoval() // All else stays.
	case isFinished(d.next):
		d.planCleanup()
		d.planRetention()
	default:
		d.planRun()
	}
}

// remove deletes an object, unless that has been asked for.
func (d *decision) remove(kind string, object metav1.Object) {
	if d.mayGo(object) {
		d.ActIfCurrent(jobpods.Deletion(kind, object))
	}
}

// removeUnchanged deletes a Pod because of the state that the Pod is in. If the Pod has changed since that state was
// seen, the Pod stays, and the next decision sees the change.
func (d *decision) removeUnchanged(pod *corev1.Pod) {
	if d.mayGo(pod) {
		d.ActIfCurrent(jobpods.DeletionAsSeen(KindPod, pod))
	}
}

// mayGo reports whether an object exists and its deletion was not requested yet.
func (d *decision) mayGo(object metav1.Object) bool {
	return !d.isGone(object.GetUID()) && object.GetDeletionTimestamp() == nil && !d.Deleted[object.GetUID()]
}

// removeOld deletes a Pod of another start. If the status lacks the number of the start, because a CRD dropped the
// number, the controller derives the number from the objects, and first checks the status with the API server.
func (d *decision) removeOld(pod *corev1.Pod) {
	if d.Kept == plan.KeptInPart && d.mayGo(pod) && !d.Checked[pod.UID] {
		d.CheckStatus(pod.UID)
		return
	}
	d.remove(KindPod, pod)
}

// planLatecomers deletes running Pods of indexes that have ended according to the status: a former leader created these
// Pods too late. A Pod that has ended, and only looks alive because the cache is behind, stays.
func (d *decision) planLatecomers() {
	d.eachPod(func(r *replicas, index int32, pod *corev1.Pod) {
		switch {
		case !r.persisted.ended(index) || !r.record.ended(index) || jobpods.HasEnded(pod) || !d.mayGo(pod):
		case !d.Checked[pod.UID]:
			d.CheckStatus(pod.UID)
		default:
			d.removeUnchanged(pod)
		}
	})
}

// planRun creates and deletes objects of a job that has Pods to run. The gang is created before the Pods, so that the
// scheduler never uses an outdated minimum. The Service of an index is created before the Pod, so that the name of a
// running Pod can always be resolved. Pods don't wait for Services of other indexes: the name of a Pod that does not
// run can't be resolved in any case.
func (d *decision) planRun() {
	for _, pod := range d.old {
		d.removeOld(pod)
	}
	d.planReplacements()
	d.planLatecomers()
	d.planSurplusServices()
	d.planLists()
	if d.invalid != "" || len(d.old) > 0 || !d.isKept() {
		return
	}
	d.planAutoscaler()
	group, service := d.planPodGroup(), !d.isShared() || d.planJobService()
	lists := d.planHosts()
	d.planReplicas(group && service && lists && d.planMPI())
}

// planReplacements deletes the Pods that are to be replaced and are counted as restarts. The count has to be written
// first: a new controller could not count them any more.
func (d *decision) planReplacements() {
	d.eachPod(func(r *replicas, index int32, pod *corev1.Pod) {
		if !r.record.restarting.Has(index) || pod.DeletionTimestamp != nil || d.Deleted[pod.UID] {
			return
		}
		if !r.persisted.restarting.Has(index) {
			d.Persist(plan.PersistSoon)
			return
		}
		// Another controller may have counted the end and created this successor.
		d.ActIfChecked(jobpods.Deletion(KindPod, pod))
	})
}

// planReplicas creates the missing objects of each index: first the Service and then, if podsMayCome, the Pod.
func (d *decision) planReplicas(podsMayCome bool) {
	group := ""
	if d.isGang() {
		group = d.kind.groupName(d.Job, d.next.Starts)
	}
	podsMayCome = podsMayCome && !d.awaitsServices()
	for _, r := range d.replicas {
		for index := range r.number {
			if (d.isShared() || d.planService(r, index)) && podsMayCome {
				d.planPod(r, index, group)
			}
		}
	}
}

// awaitsServices reports whether Pods wait because a Service is refused, and the start has no Pod yet and none in the
// status. Otherwise Pods would occupy nodes while they wait for a Pod that can't be reached.
func (d *decision) awaitsServices() bool {
	for _, r := range d.replicas {
		if len(r.pods)+int(r.record.completed.Count()+r.record.failed.Count()+r.record.restarting.Count()) > 0 {
			return false
		}
	}
	return slices.ContainsFunc(d.Blocked, func(b plan.Block) bool { return b.Verb == plan.Create && b.Kind == KindService })
}

// planService creates the missing Service of an index, and reports whether the Service exists.
func (d *decision) planService(r *replicas, index int32) bool {
	if service := r.services[index]; service != nil {
		return d.mayGo(service) && startOf(service) >= d.next.Starts
	}
	if r.record.ended(index) && r.pods[index] == nil {
		return false // There is nobody to reach.
	}
	name, start, b, t := d.kind.objectName(d.Job, r.name, index), d.next.Starts, d.builder, r.replicaType
	creation := plan.Action{
		Verb: plan.Create, Kind: KindService, Name: name, Owner: d.Job.UID, Group: "Service " + lower(r.name),
		Content: d.content(), Build: func() (metav1.Object, error) { return b.service(t, index, start), nil },
	}
	if !d.isPodGone(name) {
		creation.Tag = TriedAgain
	}
	d.ActIfCurrent(creation)
	return false
}

// planPod creates the missing Pod of an index. The written status has to show that the index has not ended, and that
// the last Pod was counted and is gone.
func (d *decision) planPod(r *replicas, index int32, group string) {
	switch {
	case r.pods[index] != nil, r.record.ended(index), r.record.restarting.Has(index):
		return
	case r.launches && d.waitsForWorkers():
		return
	case r.persisted.ended(index), r.persisted.restarting.Has(index):
		d.Persist(plan.PersistSoon)
		return
	}
	start, b, t := d.next.Starts, d.builder, r.replicaType
	withoutClass := t.ranked && d.memory.missingClass != ""
	d.ActIfCurrent(plan.Action{
		Verb: plan.Create, Kind: KindPod, Name: d.kind.objectName(d.Job, r.name, index), Owner: d.Job.UID, Group: lower(r.name),
		Content: d.content(), Build: func() (metav1.Object, error) {
			pod := b.pod(t, index, start, group)
			if withoutClass {
				pod.Spec.PriorityClassName = ""
			}
			return pod, nil
		},
	})
}

// TriedAgain is the Action.Tag of a creation that is repeated whatever the API server answers: that of the Service for
// a Pod that exists and may run.
const TriedAgain = "tried again"

// content names what the job's objects contain at present (Action.Content). It stays the same until the next start.
func (d *decision) content() string { return "start " + strconv.Itoa(int(d.next.Starts)) }
