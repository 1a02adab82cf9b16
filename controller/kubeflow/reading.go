// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// reading is the spec of a job, decoded and checked. Each job in a cache is decoded once, because decoding takes longer
// than a decision.
type reading struct {
	job  *Job
	kind *kind
	// invalid says what is wrong with the spec; "" if it is valid. An invalid spec has no builder and no types.
	invalid string
	types   []*replicaType
	builder *builder
	// gang means that the Pods of the job are placed together. always means that the configuration makes every job a
	// gang.
	gang, always bool
	// services says by how many Services the Pods of the start are reached.
	services kubeflowv1.ServiceMode
	// forceAfter is how long the deletion of a Pod may take. Nil for ever.
	forceAfter *time.Duration
	// warnings are about what counts otherwise than it was written.
	warnings []plan.Event
}

// replicaType is a type of replicas with all defaults.
type replicaType struct {
	name   string
	number int32
	// policy is what happens to Pods that fail. written is the restartPolicy in the spec.
	policy, written kubeflowv1.RestartPolicy
	// launches means that this type is the launcher of an MPIJob. A failed launcher is tried again, as often as
	// backoffLimit says.
	launches bool
	// template is changed no more.
	template *corev1.PodTemplateSpec
	// member says whether its Pods are placed with the gang.
	member bool
	// ranked says that its Pods have the PriorityClass of the schedulingPolicy.
	ranked bool
}

// isOf reports whether this is the reading of the job's present spec. Writing the status does not change the spec.
func (r *reading) isOf(job *Job, k *kind) bool {
	return r.kind == k && (r.job == job || r.job.UID == job.UID && r.job.Generation == job.Generation &&
		maps.Equal(r.job.Annotations, job.Annotations))
}

// read returns the reading of a job, which the last decision may have made.
func (m Memory) read(job *Job, k *kind, options Options) *reading {
	if m.reading != nil && m.reading.isOf(job, k) && m.reading.always == options.GangAlways && m.reading.services == options.Services {
		return m.reading
	}
	r := &reading{job: job, kind: k, always: options.GangAlways, services: options.Services}
	r.readForceDeletion()
	r.warnOfServices()
	decoded, errs := validate(job, k)
	if len(errs) > 0 {
		r.invalid = jobpods.Problems(errs)
		return r
	}
	for name, spec := range job.Spec.Replicas {
		r.types = append(r.types, &replicaType{name: k.typeOf(name), number: replicasOf(&spec), written: spec.RestartPolicy, template: decoded[name]})
	}
	slices.SortFunc(r.types, func(a, b *replicaType) int {
		return cmp.Compare(slices.Index(k.types, a.name), slices.Index(k.types, b.name))
	})
	r.gang = options.GangAlways || job.Spec.RunPolicy.SchedulingPolicy != nil && !k.designed ||
		slices.ContainsFunc(r.types, func(t *replicaType) bool { return t.template.Spec.SchedulerName == options.GangSchedulerName })
	for _, t := range r.types {
		r.complete(t, options)
	}
	r.warnOfWholeJob()
	b := newBuilder(job, k, r.types, options)
	if problem := b.tooLong(); problem != "" {
		r.invalid, r.types = problem, nil
		return r
	}
	r.builder = b
	return r
}

// complete gives a type its defaults, and its template what all its Pods share.
func (r *reading) complete(t *replicaType, options Options) {
	spec := &t.template.Spec
	if r.kind.designed {
		t.policy = kubeflowv1.RestartPolicy(cmp.Or(spec.RestartPolicy, corev1.RestartPolicyAlways))
	} else {
		t.policy = cmp.Or(t.written, r.kind.restartPolicy)
		if t.launches = r.kind.isUnnumbered(t.name); t.launches {
			t.policy = cmp.Or(t.written, kubeflowv1.RestartOnFailure)
		}
		if spec.RestartPolicy != "" {
			r.warn("SetPodTemplateRestartPolicy", "The restartPolicy of "+t.name+" counts, not that of its template")
		}
		spec.RestartPolicy = corev1.RestartPolicy(t.policy)
		if t.policy == kubeflowv1.RestartExitCode {
			spec.RestartPolicy = corev1.RestartPolicyNever
		}
	}
	if r.gang {
		if spec.SchedulerName == "" {
			spec.SchedulerName = options.GangSchedulerName
		}
		t.member = spec.SchedulerName == options.GangSchedulerName
		if !t.member {
			r.warn("SetPodTemplateSchedulerName", "Pods of "+t.name+" are not placed with the others: their template names the scheduler "+spec.SchedulerName)
		}
		policy := r.job.Spec.RunPolicy.SchedulingPolicy
		// The API server refuses a value that is not that of the class.
		if policy != nil && !r.kind.designed && spec.PriorityClassName == "" && spec.Priority == nil {
			spec.PriorityClassName, t.ranked = policy.PriorityClass, policy.PriorityClass != ""
		}
	}
	r.kind.openPort(spec)
}

func (r *reading) warnOfWholeJob() {
	policy := &r.job.Spec.RunPolicy
	if r.kind.designed && (policy.CleanPodPolicy != nil || policy.TTLSecondsAfterFinished != nil || policy.ActiveDeadlineSeconds != nil ||
		policy.BackoffLimit != nil || policy.SchedulingPolicy != nil) {
		r.warn("RunPolicyIgnored", "A TFJob of v1alpha2 ignores spec.runPolicy, except suspend and managedBy")
	}
	if spec := &r.job.Spec; r.kind.designed && (spec.SuccessPolicy != "" || spec.EnableDynamicWorker || slices.ContainsFunc(r.types, func(t *replicaType) bool { return t.written != "" })) {
		r.warn("FieldsIgnored", "spec.successPolicy, spec.enableDynamicWorker and spec.tfReplicaSpecs[*].restartPolicy are ignored in v1alpha2: the restartPolicy is that of the Pod templates")
	}
	if elastic := r.job.Spec.ElasticPolicy; elastic != nil && elastic.NProcPerNode != nil {
		r.warn("Deprecated", "elasticPolicy.nProcPerNode is deprecated: nprocPerNode of the spec takes its place")
	}
}

func (r *reading) warn(reason, message string) {
	r.warnings = append(r.warnings, plan.Event{Warning: true, Reason: reason, Message: message})
}

// typeNamed returns a type of the spec. Nil if it is not there.
func (r *reading) typeNamed(name string) *replicaType { return typeIn(r.types, name) }

func typeIn(types []*replicaType, name string) *replicaType {
	i := slices.IndexFunc(types, func(t *replicaType) bool { return t.name == name })
	if i < 0 {
		return nil
	}
	return types[i]
}

// total returns how many replicas there are, over all types.
func total(types []*replicaType) int32 {
	sum := int32(0)
	for _, t := range types {
		sum += t.number
	}
	return sum
}
