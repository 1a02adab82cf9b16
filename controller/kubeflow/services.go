// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// Pods find each other by names, which headless Services give them: each Pod has its own, as with the training
// operator, or all Pods of a job share one, in which each has its host name. That is decided when a start begins, and
// is on record: the addresses that Pods have stay valid.

// KeyServices is an annotation that says how many Services a job has: one for each Pod (PerReplica) or one for all Pods
// (PerJob). Users may set it on jobs, to override the configuration. Lockstep sets it on all objects of a start, if the
// kind of job allows the choice.
const KeyServices = "kubeflow.lockstep.dev/services"

// alwaysServed reports whether Pods of the kind have Services whatever the ServiceMode: in v1alpha2 one for each Pod,
// and in MPI one for the job.
func (k *kind) alwaysServed() bool { return k.designed || k.launches }

// wishedServices returns what a job that begins now has.
func wishedServices(job *Job, k *kind, options Options) kubeflowv1.ServiceMode {
	written := kubeflowv1.ServiceMode(job.Annotations[KeyServices])
	switch {
	case k.alwaysServed():
		return ""
	case isServiceMode(written):
		return storedMode(written)
	default:
		return storedMode(options.Services)
	}
}

// storedMode returns a ServiceMode as the status stores it. The default, one Service for each Pod, is stored as "".
func storedMode(mode kubeflowv1.ServiceMode) kubeflowv1.ServiceMode {
	if mode == kubeflowv1.ServicesPerReplica {
		return ""
	}
	return mode
}

func isServiceMode(written kubeflowv1.ServiceMode) bool {
	return written == kubeflowv1.ServicesPerReplica || written == kubeflowv1.ServicesPerJob
}

// warnOfServices warns of an annotation that has no effect.
func (r *reading) warnOfServices() {
	written, isThere := r.job.Annotations[KeyServices]
	switch {
	case !isThere:
	case !isServiceMode(kubeflowv1.ServiceMode(written)):
		r.warn("InvalidAnnotation", "metadata.annotations["+KeyServices+"] must be PerReplica or PerJob: it has no effect")
	case r.kind.alwaysServed():
		r.warn("InvalidAnnotation", "metadata.annotations["+KeyServices+"] has no effect on TFJobs of v1alpha2 and on MPIJobs")
	}
}

// servicesOfStart returns how many Services the present start has, or the start that is about to begin: one for each
// Pod, or one for all.
func (d *decision) servicesOfStart() kubeflowv1.ServiceMode {
	wish := wishedServices(d.Job, d.kind, d.Options)
	switch {
	case d.kind.alwaysServed(), d.next.StartTime == nil, is(d.next, kubeflowv1.JobConditionSuspended):
		return wish
	case isServiceMode(d.next.Services):
		return storedMode(d.next.Services)
	}
	// Each Pod has its own, or a CRD has dropped the field, another product's or that of an older Lockstep: objects of
	// the start show it.
	start, isThere := max(d.next.Starts, d.newestStart()), false
	for object := range d.objects() {
		if startOf(object) != start {
			continue
		}
		isThere = true
		if object.GetAnnotations()[KeyServices] == string(kubeflowv1.ServicesPerJob) {
			return kubeflowv1.ServicesPerJob
		}
	}
	if isThere || d.next.Phase != "" {
		return ""
	}
	return wish // Another's CRD has dropped all, and nobody was told anything yet.
}

// mayChangeServices reports whether a start that has begun with one Service for the job may change to one for each
// Pod, as the user requests. That is allowed only while the spec is invalid, for instance because names are too long,
// and nothing of the job exists: then no Pod uses the names.
func (d *decision) mayChangeServices() bool {
	if d.invalid == "" || d.reading.services == "" || wishedServices(d.Job, d.kind, d.Options) != "" || isFinished(d.next) {
		return false
	}
	for range d.objects() {
		return false
	}
	return true
}

// noteServices puts the mode of the start on record.
func (d *decision) noteServices() { d.next.Services = d.reading.services }

// isShared reports whether all Pods share a Service.
func (d *decision) isShared() bool { return d.kind.launches || d.services == kubeflowv1.ServicesPerJob }

func (b *builder) isShared() bool {
	return b.kind.launches || b.options.Services == kubeflowv1.ServicesPerJob
}

// jobServiceName returns the name of the Service that all Pods of a job share. It contains the kind, because jobs of
// other kinds, and Services of users, may have the job's name.
func (k *kind) jobServiceName(job *Job) string {
	if k.launches {
		return job.Name
	}
	return jobpods.NameOf(job.Name, "-"+strings.ToLower(k.gvk.Kind))
}

// name is by what other Pods look the Pod of an index up.
func (b *builder) name(t string, index int32) string {
	if b.isShared() {
		return b.fullName(t, index)
	}
	return b.kind.objectName(b.job, t, index)
}

// fullName returns the name of the Pod of an index in all namespaces.
func (b *builder) fullName(t string, index int32) string {
	host := b.kind.objectName(b.job, t, index)
	if b.isShared() {
		host += "." + b.kind.jobServiceName(b.job)
	}
	host += "." + b.job.Namespace + ".svc"
	if b.options.ClusterDomain != "" {
		host += "." + b.options.ClusterDomain
	}
	return host
}

// jobService returns the headless Service for one start of the job. The Service gives all Pods their DNS names. It also
// publishes Pods that are not ready, so that Pods that wait for each other find them; for MPI only if the launcher is
// also a worker.
func (b *builder) jobService(start int32) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: b.metadata(b.kind.jobServiceName(b.job), start),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 b.jobLabels(),
			PublishNotReadyAddresses: !b.kind.launches || b.job.Spec.MPI.RunLauncherAsWorker,
		},
	}
	service.Labels = b.jobLabels()
	if !b.kind.launches {
		service.Spec.Ports = b.sharedPorts()
	}
	return service
}

// sharedPorts returns the named ports of all types. If several have the same name or number, only the first is in the
// result, because a Service takes no more.
func (b *builder) sharedPorts() []corev1.ServicePort {
	var ports []corev1.ServicePort
	for _, t := range b.types {
		for _, port := range b.kind.namedPorts(&t.template.Spec) {
			if !slices.ContainsFunc(ports, func(p corev1.ServicePort) bool {
				return p.Name == port.Name || p.Port == port.ContainerPort && cmp.Or(p.Protocol, corev1.ProtocolTCP) == protocol(port)
			}) {
				ports = append(ports, servicePort(port))
			}
		}
	}
	return ports
}

// planJobService creates the Service that the Pods of the start share, and reports whether the Service exists.
func (d *decision) planJobService() bool {
	name := d.kind.jobServiceName(d.Job)
	switch have := d.Services[name]; {
	case have == nil || d.isGone(have.GetUID()):
		start, b := d.next.Starts, d.builder
		creation := plan.Action{
			Verb: plan.Create, Kind: KindService, Name: name, Owner: d.Job.UID, Content: d.content(),
			Build: func() (metav1.Object, error) { return b.jobService(start), nil },
		}
		if !d.isUnneeded(name) {
			creation.Tag = TriedAgain
		}
		d.ActIfCurrent(creation)
		return false
	case startOf(have) < d.next.Starts:
		d.remove(KindService, have)
		return false
	default:
		return d.mayGo(have)
	}
}

// planSurplusServices deletes Services that reach no Pod of this start: those of indexes that were scaled away (once
// the Pod is gone), those of earlier starts, and those of the ServiceMode that the start does not use.
func (d *decision) planSurplusServices() {
	if d.invalid != "" {
		return
	}
	d.eachService(func(r *replicas, index int32, service metav1.Object) {
		if index >= r.number && d.isPodGone(service.GetName()) || startOf(service) < d.next.Starts || d.isShared() {
			d.remove(KindService, service)
		}
	})
	if have := d.Services[d.kind.jobServiceName(d.Job)]; have != nil && !d.isShared() {
		d.remove(KindService, have)
	}
}

func (d *decision) eachService(visit func(*replicas, int32, metav1.Object)) {
	for _, r := range d.replicas {
		for index := range r.reach {
			if service := r.services[index]; service != nil {
				visit(r, index, service)
			}
		}
	}
}
