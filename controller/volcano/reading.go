// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"maps"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// reading is the spec of a Job, decoded and checked. Each Job in a cache is decoded once, because decoding takes longer
// than a decision.
type reading struct {
	job *batchv1alpha1.Job
	// spec has all defaults.
	spec *batchv1alpha1.JobSpec
	// ours says whether the Job is ours by its scheduler.
	ours bool
	// invalid says what is wrong with the spec; empty if it is valid. An invalid spec has no builder.
	invalid string
	builder *builder
	// tooLarge says what the API server has no room for. Empty if all fits.
	tooLarge string
	// sides are the objects of plugins, and warnings are their warnings to the user.
	sides    []sideObject
	warnings []string
	// hash is the hash of the Job's immutable parts; empty for an invalid spec, which may be huge.
	hash string
	// topology is the topology of the gang. unmapped says why the gang has none although the Job asks for one.
	topology []schedulingv1alpha1.TopologyConstraint
	unmapped string
	// members says for each task, by its position, whether its Pods belong to the gang.
	members []bool
	// policies says, by its place, whether any policy may match events of a task.
	policies []bool
}

// isOf reports whether this is the reading of the Job's present spec. Writing the status does not change the spec.
func (r *reading) isOf(job *batchv1alpha1.Job) bool {
	return r.job == job || r.job.UID == job.UID && r.job.Generation == job.Generation &&
		maps.Equal(r.job.Labels, job.Labels) && maps.Equal(r.job.Annotations, job.Annotations)
}

// read returns the reading of a Job, from memory if the last decision has made one. unreadable says why the spec can't
// be decoded; "" if the spec can be decoded.
func (m Memory) read(job *batchv1alpha1.Job, unreadable string, options Options) *reading {
	if m.reading != nil && m.reading.isOf(job) {
		return m.reading
	}
	if unreadable != "" {
		return unreadableSpec(job, unreadable)
	}
	r := &reading{job: job, spec: effective(&job.Spec), ours: IsOurs(&job.Spec, options)}
	if !r.ours {
		return r
	}
	r.topology, r.unmapped = topologyOf(r.spec, options.Tiers)
	if errs := Validate(job); len(errs) > 0 {
		r.invalid = plan.CutMessage(jobpods.Problems(errs))
		r.bound()
		return r
	}
	r.hash = immutableHash(&job.Spec)
	var err error
	if r.builder, err = newBuilder(job, r.spec, options.GangSchedulerName, options.SchedulerNames); err != nil {
		r.invalid = plan.CutMessage(err.Error())
		return r
	}
	r.tooLarge = r.builder.tooLarge()
	r.sides, r.warnings = r.builder.sideObjects(), r.builder.warnings()
	for i := range r.spec.Tasks {
		r.policies = append(r.policies, len(r.spec.Policies)+len(r.spec.Tasks[i].Policies) > 0)
		r.members = append(r.members, r.builder.schedulerOf(i) == options.GangSchedulerName)
	}
	return r
}

// unreadableSpec returns the reading of a Job that this controller runs and that has a spec that can't be decoded.
func unreadableSpec(job *batchv1alpha1.Job, why string) *reading {
	return &reading{job: job, spec: effective(&batchv1alpha1.JobSpec{}), ours: true, invalid: plan.CutMessage("spec can't be read: " + why)}
}

// bound limits the numbers of a refused spec, so that computing with them can't overflow.
func (r *reading) bound() {
	left := int32(batchv1alpha1.MaxReplicas)
	for i := range r.spec.Tasks {
		task := &r.spec.Tasks[i]
		task.Replicas = max(0, min(task.Replicas, left))
		left -= task.Replicas
	}
}
