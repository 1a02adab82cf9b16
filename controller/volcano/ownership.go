// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"slices"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// checkOwnership ends the round, without writing the status, if this controller does not run the Job. If that is only
// because another controller runs the Job, a warning says so once.
func (d *decision) checkOwnership() (goOn bool) {
	switch manager := jobpods.ForeignManager(d.Job, d.Options.Manager); {
	case !d.ours:
	case d.Job.Annotations[KeyTakeOver] == "true":
		return true
	case manager != "":
		d.WarnOnce(ReasonForeignStatus, "The status was written by %q: the Job is left alone. %s", manager, howToHandOver)
	case d.ForeignGroup != "":
		d.WarnOnce(ReasonForeignStatus, "The Job has the Volcano PodGroup %s: it is left alone. %s", d.ForeignGroup, howToHandOver)
	default:
		return true
	}
	d.leave = true
	return false
}

const howToHandOver = "If no controller of Volcano acts on it any more, the annotation " + KeyTakeOver + ": \"true\" has Lockstep run it"

// IsOurs reports whether this controller runs a Job, by the Job's scheduler name. That is the name in the Job's spec
// or, if it has none, the name that all its templates share.
func IsOurs(spec *batchv1alpha1.JobSpec, options Options) bool {
	name := spec.SchedulerName
	if name == "" {
		name = sharedScheduler(spec)
	}
	return slices.Contains(options.SchedulerNames, name)
}

// sharedScheduler returns the scheduler that all templates name, empty if there is none.
func sharedScheduler(spec *batchv1alpha1.JobSpec) string {
	shared := ""
	for i := range spec.Tasks {
		name := jobpods.TemplateScheduler(spec.Tasks[i].Template.Raw)
		if name == "" || i > 0 && name != shared {
			return ""
		}
		shared = name
	}
	return shared
}
