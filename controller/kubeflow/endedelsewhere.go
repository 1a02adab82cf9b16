// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// retire applies cleanPodPolicy and ttlSecondsAfterFinished to a job that another controller has ended, so that the
// jobs of a training operator that was uninstalled do not stay for ever. It changes nothing else of such a job. retire
// does so only if Lockstep is configured to run all jobs; otherwise the other controller may still exist.
func (d *decision) retire() {
	d.kind = kindOf(d.Job, d.Job.Spec.CreatedAs)
	if d.Options.TakeJobs != TakeAll || d.kind == nil || d.kind.designed || d.Job.DeletionTimestamp != nil {
		return
	}
	d.retirePods()
	ttl, ended := d.Job.Spec.RunPolicy.TTLSecondsAfterFinished, endOf(d.Persisted)
	if ttl != nil && ended != nil && d.deleteJob(ended.Time, *ttl) {
		d.Once(false, "SuccessfulDeleteJob", "The job, which another controller has ended, is deleted %d s after its end: ttlSecondsAfterFinished", *ttl)
	}
}

// retirePods deletes the Pods that the cleanPodPolicy says, and then their Services.
func (d *decision) retirePods() {
	policy := d.Job.Spec.RunPolicy.CleanPodPolicy
	if policy == nil || *policy != kubeflowv1.CleanPodPolicyAll && *policy != kubeflowv1.CleanPodPolicyRunning {
		return
	}
	cleaned := false
	for _, name := range jobpods.SortedKeys(d.Pods) {
		pod := d.Pods[name]
		if d.isLauncher(name) || *policy == kubeflowv1.CleanPodPolicyRunning && jobpods.HasEnded(pod) {
			continue
		}
		cleaned = cleaned || d.mayGo(pod)
		d.removeUnchanged(pod)
	}
	if cleaned {
		d.Once(false, "CleanPodPolicy", "Another controller has ended the job; its Pods are deleted as cleanPodPolicy: %s says", *policy)
	}
	for _, name := range jobpods.SortedKeys(d.Services) {
		if !d.kind.launches && d.isUnneeded(name) {
			d.remove(KindService, d.Services[name])
		}
	}
}

// endOf returns when a job ended: its completionTime, or else when its final condition became True. Nil if the status
// has neither.
func endOf(status *kubeflowv1.JobStatus) *metav1.Time {
	if status.CompletionTime != nil {
		return status.CompletionTime
	}
	for _, c := range status.Conditions {
		if (c.Type == kubeflowv1.JobConditionSucceeded || c.Type == kubeflowv1.JobConditionFailed) && is(status, c.Type) && !c.LastTransitionTime.IsZero() {
			return &c.LastTransitionTime
		}
	}
	return nil
}
