// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// checkOwnership leaves jobs alone that are not ours: nothing of them is written. Of one that
// should be ours, but that another controller has begun, the user is warned once.
func (d *decision) checkOwnership() (goOn bool) {
	if !Takes(d.Job, d.Options) {
		d.leave = true
		return false
	}
	if what := d.stranger(); what != "" {
		d.warnOnce("ManagedElsewhere", "%s: the job is left alone", what)
		d.leave = true
	}
	return !d.leave
}

// Takes says whether a job is ours, by its namespace, its managedBy and the options.
func Takes(job *Job, options Options) bool {
	if len(options.Namespaces) > 0 && !options.Namespaces[job.Namespace] {
		return false
	}
	manager := ""
	if m := job.Spec.RunPolicy.ManagedBy; m != nil {
		manager = *m
	}
	switch manager {
	case kubeflowv1.ManagedByLockstep:
		return true
	case "", kubeflowv1.ManagedByTrainingOperator:
		return options.TakeJobs == TakeAll || options.TakeJobs == TakeScheduler && namesSchedulerOfOurs(job, options)
	default:
		return false
	}
}

func namesSchedulerOfOurs(job *Job, options Options) bool {
	for _, spec := range job.Spec.Replicas {
		if name := jobpods.TemplateScheduler(spec.Template.Raw); name != "" && slices.Contains(options.SchedulerNames, name) {
			return true
		}
	}
	return false
}

// stranger is what shows that another controller has begun the job: objects that we have not
// made, or a status of somebody else where nothing of ours is. Empty for nothing.
func (d *decision) stranger() string {
	var strangers []string
	for name, pod := range d.Pods {
		if !isOurs(pod) {
			strangers = append(strangers, "Pod "+name+" was made by another controller")
		}
	}
	for name, service := range d.Services {
		if !isOurs(service) {
			strangers = append(strangers, "Service "+name+" was made by another controller")
		}
	}
	if len(strangers) > 0 {
		return slices.Min(strangers)
	}
	if status := d.Persisted; status != nil && len(status.Conditions) > 0 && len(d.Pods)+len(d.Services) == 0 && status.Starts == 0 {
		if manager := jobpods.ForeignManager(d.Job, d.Options.Manager); manager != "" {
			return "The status was written by " + manager
		}
	}
	return ""
}

// isOurs says whether a Pod or a Service of the job was made by this controller.
func isOurs(object metav1.Object) bool { return object.GetAnnotations()[KeyStart] != "" }
