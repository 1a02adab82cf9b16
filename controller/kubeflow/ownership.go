// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// checkOwnership ends the round, without writing the status, if this controller does not run the job. If that is only
// because another controller has begun the job, which has not ended, a warning says so once.
func (d *decision) checkOwnership() (goOn bool) {
	if !Takes(d.Job, d.Options) && !(TakesBegun(d.Job, d.Options) && d.hasBegun()) {
		d.leave = true
		return false
	}
	switch what := d.stranger(); {
	case what == "":
	case d.endedElsewhere():
		d.retire()
		d.leave = true
	default:
		d.WarnOnce("ManagedElsewhere", "%s: the job is left alone", what)
		d.leave = true
	}
	return !d.leave
}

// Takes reports whether this controller runs a job, by the job's namespace, managedBy and templates, and by the
// options.
func Takes(job *Job, options Options) bool {
	if !options.serves(job.Namespace) {
		return false
	}
	switch managerOf(job) {
	case kubeflowv1.ManagedByLockstep:
		return true
	case "", freeManagerOf(job):
		return options.TakeJobs == TakeAll || options.TakeJobs == TakeScheduler && namesSchedulerOfOurs(job, options)
	default:
		return false
	}
}

// TakesBegun reports whether this controller keeps a job that it has begun. The job's status, or an object for which
// IsOurs is true, shows that this controller has begun it. The schedulerName in the templates no longer counts then:
// users may edit it, and a job never changes hands.
func TakesBegun(job *Job, options Options) bool {
	manager := managerOf(job)
	isFree := manager == "" || manager == freeManagerOf(job)
	return options.serves(job.Namespace) && options.TakeJobs == TakeScheduler && isFree || Takes(job, options)
}

// serves reports whether jobs of a namespace may be ours.
func (o *Options) serves(namespace string) bool {
	return len(o.Namespaces) == 0 || o.Namespaces[namespace]
}

// managerOf returns the value of the job's managedBy; "" if it has none.
func managerOf(job *Job) string { return ptr.Deref(job.Spec.RunPolicy.ManagedBy, "") }

// freeManagerOf returns the value of managedBy with which this controller runs jobs of the kind. The controller also
// runs jobs without managedBy.
func freeManagerOf(job *Job) string {
	if k := kindOf(job, ""); k != nil {
		return k.freeManager()
	}
	return kubeflowv1.ManagedByTrainingOperator
}

func namesSchedulerOfOurs(job *Job, options Options) bool {
	return slices.ContainsFunc(job.schedulers(), func(name string) bool { return slices.Contains(options.SchedulerNames, name) })
}

// hasBegun reports whether this controller has begun the job, as shown by the status, or by an object that this
// controller has created.
func (d *decision) hasBegun() bool {
	return d.Persisted != nil && d.Persisted.Starts > 0 || jobpods.HasStatusOf(d.Job, d.Options.Manager) || d.hasObjects()
}

// hasObjects reports whether an object of the job exists that this controller has created.
func (d *decision) hasObjects() bool {
	for object := range d.podsAndServices() {
		if IsOurs(object) {
			return true
		}
	}
	return false
}

// stranger says why another controller must have begun the job: there are objects that this controller has not created,
// or another controller's status while no object of this controller exists. "" if there is no such sign.
func (d *decision) stranger() string {
	var strangers []string
	for name, pod := range d.Pods {
		if !IsOurs(pod) {
			strangers = append(strangers, "Pod "+name+" was made by another controller")
		}
	}
	for name, service := range d.Services {
		if !IsOurs(service) {
			strangers = append(strangers, "Service "+name+" was made by another controller")
		}
	}
	if len(strangers) > 0 {
		return slices.Min(strangers)
	}
	// A suspended job has nothing of anybody's: it begins again, whichever client has suspended it.
	if len(d.Pods)+len(d.Services) > 0 || is(d.Persisted, kubeflowv1.JobConditionSuspended) {
		return ""
	}
	return d.statusOfAnother()
}

// statusOfAnother says why the status must come from other controllers alone; "" if nothing shows that.
func (d *decision) statusOfAnother() string {
	status := d.Persisted
	switch {
	case isBlank(status), status.Phase != "", status.Starts > 0:
		return ""
	case jobpods.HasStatusOf(d.Job, d.Options.Manager):
		return ""
	case jobpods.ForeignManager(d.Job, d.Options.Manager) != "":
		return "The status was written by " + jobpods.ForeignManager(d.Job, d.Options.Manager)
	default:
		return "Another client has written the status; the managed fields, which would name the client, were removed"
	}
}

// endedElsewhere reports whether the job has ended, and not with this controller.
func (d *decision) endedElsewhere() bool {
	isOver := isFinished(d.Persisted) || is(d.Persisted, kubeflowv1.JobConditionSucceeded) || is(d.Persisted, kubeflowv1.JobConditionFailed)
	return isOver && d.statusOfAnother() != ""
}

// checkUnbegun lists the Pods of a job from the API server before anything of the job is written for the first time.
// Another controller may have created Pods for the job that the cache does not show yet.
func (d *decision) checkUnbegun() (goOn bool) {
	d.memory.looked = d.Memory.looked || d.WasListed(KindPod) || d.hasObjects() ||
		!isBlank(d.Persisted) && d.statusOfAnother() == ""
	if !d.memory.looked {
		d.list(KindPod)
		d.leave = true
	}
	return !d.leave
}

// isBlank reports whether a status says nothing that anybody would know a job by.
func isBlank(status *kubeflowv1.JobStatus) bool {
	return status == nil || len(status.Conditions) == 0 && status.Phase == "" && status.Starts == 0
}

// IsOurs reports whether this controller has created a Pod or a Service of a job.
func IsOurs(object metav1.Object) bool { return object.GetAnnotations()[KeyStart] != "" }
