// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeflow

import (
	"cmp"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// builder builds the objects of one job. The result depends only on the arguments. A builder is immutable, so several
// goroutines may use it.
type builder struct {
	job     *Job
	kind    *kind
	types   []*replicaType
	options Options
	// cluster returns the part of TF_CONFIG that is the same for all Pods: their addresses. hosts are the lists of
	// addresses for arguments, by type.
	cluster func() string
	hosts   func() map[string]string
	// workers is the list of the names of all workers.
	workers func() string
	// hostFile is the list of hosts of MPI.
	hostFile func() string
	// lists are the long lists in the environment of all Pods.
	lists func() keptLists
	// leastResources is what the gang needs at least, in JSON.
	leastResources func() (string, error)
}

func newBuilder(job *Job, k *kind, types []*replicaType, options Options) *builder {
	b := &builder{job: job, kind: k, types: types, options: options}
	b.cluster = sync.OnceValue(b.renderCluster)
	b.hosts = sync.OnceValue(b.renderHosts)
	b.workers = sync.OnceValue(b.renderWorkers)
	b.lists = sync.OnceValue(b.renderLists)
	b.hostFile = sync.OnceValue(b.renderHostFile)
	b.leastResources = sync.OnceValues(b.renderLeastResources)
	return b
}

// podMaking is a Pod that is being made.
type podMaking struct {
	*corev1.Pod
	of    *replicaType
	index int32
}

// pod returns the Pod of an index for a start. group is the Pod's PodGroup; "" if there is none.
func (b *builder) pod(t *replicaType, index, start int32, group string) *corev1.Pod {
	template := t.template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name, pod.GenerateName, pod.Namespace = b.kind.objectName(b.job, t.name, index), "", b.job.Namespace
	pod.OwnerReferences = append(pod.OwnerReferences, b.owner())
	pod.Labels = jobpods.With(pod.Labels, b.labels(t.name, index))
	switch {
	case b.kind.launches:
		pod.Labels[kubeflowv1.KeyJobRole] = lower(t.name)
	case b.leads(t.name, index):
		pod.Labels[kubeflowv1.KeyJobRole] = kubeflowv1.JobRoleMaster
	}
	pod.Annotations = jobpods.With(pod.Annotations, b.marks(start))
	if group != "" && t.member {
		pod.Labels[schedulingv1alpha1.LabelPodGroup] = group
		pod.Labels[schedulingv1alpha1.LabelRole] = lower(t.name)
	}
	if b.isShared() && !b.kind.launches {
		pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, b.kind.jobServiceName(b.job)
		pod.Spec.SetHostnameAsFQDN = nil // A host name that long, of more than 64 characters, starts no Pod.
	}
	b.kind.tell(b, &podMaking{Pod: pod, of: t, index: index})
	return pod
}

// labels returns the labels of the Pod of an index. Kueue ranks Pods by the label with the index. If the launcher is
// also a worker, the launcher has 0 there, and the workers count from 1, as under the MPI operator.
func (b *builder) labels(t string, index int32) map[string]string {
	if b.kind.launches && t == kubeflowv1.ReplicaWorker && b.job.Spec.MPI.RunLauncherAsWorker {
		index++
	}
	return jobpods.With(b.jobLabels(), map[string]string{
		kubeflowv1.KeyReplicaType:  lower(t),
		kubeflowv1.KeyReplicaIndex: strconv.Itoa(int(index)),
	})
}

// jobLabels find all that the job has.
func (b *builder) jobLabels() map[string]string {
	return map[string]string{kubeflowv1.KeyOperatorName: b.kind.operator, kubeflowv1.KeyJobName: b.job.Name}
}

// leads reports whether a Pod's log is the log of the job: the Pod of the Chief or Master, or else worker 0.
func (b *builder) leads(t string, index int32) bool {
	leaders := []string{kubeflowv1.ReplicaChief, kubeflowv1.ReplicaMaster}
	if slices.Contains(leaders, t) {
		return true
	}
	return t == kubeflowv1.ReplicaWorker && index == 0 &&
		!slices.ContainsFunc(b.types, func(t *replicaType) bool { return slices.Contains(leaders, t.name) })
}

// service returns the Service of an index for a start. The Service also publishes Pods that are not ready, so that Pods
// that wait for each other find them.
func (b *builder) service(t *replicaType, index, start int32) *corev1.Service {
	service := &corev1.Service{
		ObjectMeta: b.metadata(b.kind.objectName(b.job, t.name, index), start),
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			Selector:                 b.labels(t.name, index),
			PublishNotReadyAddresses: true,
		},
	}
	service.Labels = b.labels(t.name, index)
	for _, port := range b.kind.namedPorts(&t.template.Spec) {
		service.Spec.Ports = append(service.Spec.Ports, servicePort(port))
	}
	return service
}

func servicePort(port corev1.ContainerPort) corev1.ServicePort {
	return corev1.ServicePort{
		Name: port.Name, Port: port.ContainerPort, Protocol: port.Protocol, TargetPort: intstr.FromInt32(port.ContainerPort),
	}
}

// namedPorts returns the named ports of the training container. A Service takes only one port of each number. If
// several have the same number, the result has the kind's own port, or else the first.
func (k *kind) namedPorts(spec *corev1.PodSpec) []corev1.ContainerPort {
	var named []corev1.ContainerPort
	for _, port := range k.mainContainer(spec).Ports {
		i := slices.IndexFunc(named, func(p corev1.ContainerPort) bool {
			return p.ContainerPort == port.ContainerPort && protocol(p) == protocol(port)
		})
		switch {
		case port.Name == "":
		case i < 0:
			named = append(named, port)
		case port.Name == k.portName:
			named[i] = port
		}
	}
	return named
}

// protocol is that of a port, by which two of one number differ.
func protocol(port corev1.ContainerPort) corev1.Protocol {
	return cmp.Or(port.Protocol, corev1.ProtocolTCP)
}

// metadata returns the metadata of an object of the job, other than a Pod, for a start.
func (b *builder) metadata(name string, start int32) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: b.job.Namespace, OwnerReferences: []metav1.OwnerReference{b.owner()},
		Annotations: jobpods.With(b.marks(start), map[string]string{KeyCreatedAs: b.kind.versionName()}),
	}
}

// marks returns the annotations that every object of a start has. They override annotations of a template.
func (b *builder) marks(start int32) map[string]string {
	marks := map[string]string{KeyStart: strconv.Itoa(int(start))}
	if !b.kind.alwaysServed() {
		marks[KeyServices] = string(cmp.Or(b.options.Services, kubeflowv1.ServicesPerReplica))
	}
	return marks
}

// owner makes the job the controller of an object.
func (b *builder) owner() metav1.OwnerReference { return *metav1.NewControllerRef(b.job, b.kind.gvk) }

// mainContainer returns the container that trains: the container with the name that the kind prescribes, or else the
// first.
func (k *kind) mainContainer(spec *corev1.PodSpec) *corev1.Container {
	return &spec.Containers[max(0, k.namedContainer(spec))]
}

// namedContainer returns the index of the container with the kind's name, -1 if none.
func (k *kind) namedContainer(spec *corev1.PodSpec) int {
	return slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == k.container })
}

// openPort adds the port on which other Pods reach the training container, unless the container already has a port with
// the same name.
func (k *kind) openPort(spec *corev1.PodSpec) {
	if k.portName == "" {
		return
	}
	container := k.mainContainer(spec)
	if !slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == k.portName }) {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: k.portName, ContainerPort: k.port})
	}
}

// portOf returns the port by which Pods of a type are reached.
func (b *builder) portOf(t *replicaType) string {
	for _, port := range b.kind.mainContainer(&t.template.Spec).Ports {
		if port.Name == b.kind.portName {
			return strconv.Itoa(int(port.ContainerPort))
		}
	}
	return strconv.Itoa(int(b.kind.port))
}

// address returns where a Pod of the job is reached.
func (b *builder) address(t *replicaType, index int32) string {
	return b.fullName(t.name, index) + ":" + b.portOf(t)
}

// addresses are those of all Pods of a type.
func (b *builder) addresses(t *replicaType) []string {
	all := make([]string, 0, t.number)
	for index := range t.number {
		all = append(all, b.address(t, index))
	}
	return all
}
