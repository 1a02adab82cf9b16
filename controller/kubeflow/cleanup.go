// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// planRemoval takes away all that a suspended job has. Services go after their Pods.
func (d *decision) planRemoval() {
	for _, name := range jobpods.SortedKeys(d.Pods) {
		d.remove(KindPod, d.Pods[name])
	}
	for _, name := range jobpods.SortedKeys(d.Services) {
		if d.isUnneeded(name) {
			d.remove(KindService, d.Services[name])
		}
	}
	d.planGangRemoval()
}

// planGangRemoval deletes the objects that only a running job needs: the gang and the autoscaler.
func (d *decision) planGangRemoval() {
	for _, name := range jobpods.SortedKeys(d.PodGroups) {
		d.remove(KindPodGroup, d.PodGroups[name])
	}
	for _, name := range jobpods.SortedKeys(d.Autoscalers) {
		d.remove(KindAutoscaler, d.Autoscalers[name])
	}
}

// isUnneeded reports whether a Service reaches no Pod any more.
func (d *decision) isUnneeded(service string) bool {
	if service != d.kind.jobServiceName(d.Job) {
		return d.isPodGone(service)
	}
	for name := range d.Pods {
		if !d.isPodGone(name) {
			return false
		}
	}
	return true
}

func (d *decision) isPodGone(name string) bool {
	pod := d.Pods[name]
	return pod == nil || d.isGone(pod.UID)
}

// planCleanup deletes the objects of an ended job, as cleanPodPolicy says. If a limit has ended the job, the Pods that
// remain are stopped.
func (d *decision) planCleanup() {
	d.planGangRemoval()
	d.planLatecomers()
	policy := kubeflowv1.CleanPodPolicyNone
	if p := d.Job.Spec.RunPolicy.CleanPodPolicy; p != nil && *p != "" && d.invalid == "" {
		policy = *p
	}
	stays := func(pod *corev1.Pod) bool {
		return policy == kubeflowv1.CleanPodPolicyNone || policy == kubeflowv1.CleanPodPolicyRunning && jobpods.HasEnded(pod)
	}
	for _, pod := range d.old {
		d.removeOld(pod)
	}
	for _, name := range jobpods.SortedKeys(d.Pods) {
		switch pod := d.Pods[name]; {
		case startOf(pod) != d.next.Starts:
		case d.isLauncher(name):
			d.stop(pod) // Its log is that of the job, and it launches nothing more.
		case policy == kubeflowv1.CleanPodPolicyAll:
			d.remove(KindPod, pod)
		case !stays(pod):
			d.removeUnchanged(pod)
		case d.endedByLimit():
			d.stop(pod)
		}
	}
	for _, name := range jobpods.SortedKeys(d.Services) {
		if d.isUnneeded(name) && policy != kubeflowv1.CleanPodPolicyNone && !d.kind.launches {
			d.remove(KindService, d.Services[name])
		}
	}
}

// stop makes the kubelet end a Pod without deleting the object. stop sets the Pod's deadline, one of the few fields
// that can be changed. A Pod without a node has no kubelet and no logs, and is deleted instead, unless the Pod has got
// a node meanwhile.
func (d *decision) stop(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" && !jobpods.HasEnded(pod) {
		if pod.DeletionTimestamp == nil && !d.Deleted[pod.UID] {
			d.Act(jobpods.DeletionAsSeen(KindPod, pod))
		}
		return
	}
	if jobpods.HasEnded(pod) || pod.DeletionTimestamp != nil || pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds <= 1 {
		return
	}
	d.ActIfCurrent(plan.Action{
		Verb: plan.Update, Kind: KindPod, Name: pod.Name, UID: pod.UID, Content: "stop", Detail: "stop",
		Patch: []plan.Operation{{Op: "add", Path: "/spec/activeDeadlineSeconds", Value: int64(1)}},
	})
}
