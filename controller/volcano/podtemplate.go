// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/controller/jobpods"
)

// builder builds the objects of one Job. The result depends only on the arguments. A builder is immutable, so several
// goroutines may use it.
type builder struct {
	job *batchv1alpha1.Job
	// spec is the Job's, with all defaults.
	spec *batchv1alpha1.JobSpec
	// gangScheduler places the Job's gang, and ours are the names that mean gangScheduler.
	gangScheduler string
	ours          []string
	// templates are those of the tasks.
	templates []*corev1.PodTemplateSpec
	// claims are mounted into the Pods.
	claims []claim
	// plugins change the Pods, in this order.
	plugins []plugin
	// problems are what plugins could not make sense of.
	problems []string
}

// newBuilder returns a builder for a Job with a valid spec that has its defaults. gangScheduler is the scheduler that
// places gangs: Pods get its name in place of an empty name or a name in `ours`. newBuilder returns an error if a
// template or a claim is invalid.
func newBuilder(job *batchv1alpha1.Job, spec *batchv1alpha1.JobSpec, gangScheduler string, ours []string) (*builder, error) {
	b := &builder{job: job, spec: spec, gangScheduler: gangScheduler, ours: ours}
	for i := range spec.Tasks {
		template, err := jobpods.DecodeTemplate(spec.Tasks[i].Template.Raw)
		if err != nil {
			return nil, fmt.Errorf("spec.tasks[%d].template %w", i, err)
		}
		b.templates = append(b.templates, template)
	}
	var err error
	if b.claims, err = claimsOf(job, spec); err != nil {
		return nil, err
	}
	b.plugins = b.newPlugins()
	return b, b.checkPorts()
}

// podMoment is the part of a Pod that depends on the time of creation.
type podMoment struct {
	// Version and RetryCount are those of the Job.
	Version, RetryCount int32
	// Group is the PodGroup that the Pod becomes a member of. Empty for none.
	Group string
}

// pod returns the Pod of an index of a task. place is the position of the task in the spec.
func (b *builder) pod(place int, index int32, moment podMoment) *corev1.Pod {
	task := &b.spec.Tasks[place]
	template := b.templates[place].DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	b.identify(pod, task, index, moment)
	b.inherit(pod)
	b.schedule(pod, place, moment.Group)
	b.mountClaims(pod)
	for _, plugin := range b.plugins {
		plugin.change(pod, place, index)
	}
	return pod
}

// podName returns the name of the Pod of an index, whatever its version.
func podName(job, task string, index int32) string {
	return job + "-" + task + "-" + strconv.Itoa(int(index))
}

// identify sets the Pod's name, owner, labels and annotations, whatever the template has there. identify removes
// annotations that the controller sets only on existing Pods: a Pod that was created with KeyMark, for instance, would
// be deleted and created again for ever.
func (b *builder) identify(pod *corev1.Pod, task *batchv1alpha1.TaskSpec, index int32, moment podMoment) {
	number := strconv.Itoa(int(index))
	pod.Name = podName(b.job.Name, task.Name, index)
	pod.GenerateName = ""
	pod.Namespace = b.job.Namespace
	pod.OwnerReferences = append(pod.OwnerReferences, b.owner())
	pod.Labels = jobpods.With(pod.Labels, map[string]string{
		batchv1alpha1.KeyJobName:      b.job.Name,
		batchv1alpha1.KeyJobNamespace: b.job.Namespace,
		batchv1alpha1.KeyTaskName:     task.Name,
		batchv1alpha1.KeyTaskIndex:    number,
	})
	if len(b.spec.Queue) <= validation.LabelValueMaxLength {
		pod.Labels[batchv1alpha1.KeyQueueName] = b.spec.Queue // A longer name is in the annotation only.
	}
	if partitions := task.PartitionPolicy; partitions != nil && partitions.PartitionSize > 0 {
		pod.Labels[batchv1alpha1.KeyPartitionID] = strconv.Itoa(int(index / partitions.PartitionSize))
	}
	delete(pod.Annotations, KeyMark)
	delete(pod.Annotations, KeyEvictedAt)
	pod.Annotations = jobpods.With(pod.Annotations, map[string]string{
		batchv1alpha1.KeyJobName:       b.job.Name,
		batchv1alpha1.KeyTaskName:      task.Name,
		batchv1alpha1.KeyTaskIndex:     number,
		batchv1alpha1.KeyQueueName:     b.spec.Queue,
		batchv1alpha1.KeyJobVersion:    strconv.Itoa(int(moment.Version)),
		batchv1alpha1.KeyJobRetryCount: strconv.Itoa(int(moment.RetryCount)),
		batchv1alpha1.KeyTemplateUID:   b.job.Name + "-" + task.Name,
	})
	if task.TopologyPolicy != "" {
		pod.Annotations[batchv1alpha1.KeyNumaTopology] = string(task.TopologyPolicy)
	}
}

// inherit copies labels and annotations of the Job to the Pod.
func (b *builder) inherit(pod *corev1.Pod) {
	for _, key := range []string{batchv1alpha1.KeyPreemptable, batchv1alpha1.KeyCooldownTime} {
		if value, ok := b.job.Labels[key]; ok {
			pod.Labels[key] = value
		}
	}
	annotations := []string{batchv1alpha1.KeyPreemptable, batchv1alpha1.KeyCooldownTime, batchv1alpha1.KeyRevocableZone, batchv1alpha1.KeyJDBMinAvailable}
	if _, ok := b.job.Annotations[batchv1alpha1.KeyJDBMinAvailable]; !ok {
		annotations = append(annotations, batchv1alpha1.KeyJDBMaxUnavailable)
	}
	for _, key := range annotations {
		if value, ok := b.job.Annotations[key]; ok {
			pod.Annotations[key] = value
		}
	}
}

// schedule sets the Pod's scheduler, class and gang.
func (b *builder) schedule(pod *corev1.Pod, place int, group string) {
	spec := &pod.Spec
	spec.SchedulerName = b.schedulerOf(place)
	if spec.SchedulerName == b.gangScheduler { // Another one, Volcano's say, would wait for such a group.
		pod.Annotations[batchv1alpha1.KeyGroupName] = b.job.Name + "-" + string(b.job.UID)
	}
	// The API server refuses a value that is not that of the class.
	if spec.PriorityClassName == "" && spec.Priority == nil {
		spec.PriorityClassName = b.spec.PriorityClassName
	}
	if spec.HostNetwork && spec.DNSPolicy == "" {
		spec.DNSPolicy = corev1.DNSClusterFirstWithHostNet
	}
	if group != "" {
		pod.Labels[schedulingv1alpha1.LabelPodGroup] = group
		pod.Labels[schedulingv1alpha1.LabelRole] = b.spec.Tasks[place].Name
	}
}

// schedulerOf returns the scheduler of the Pods of a task.
func (b *builder) schedulerOf(place int) string {
	name := cmp.Or(b.templates[place].Spec.SchedulerName, b.spec.SchedulerName)
	if name == "" || slices.Contains(b.ours, name) {
		return b.gangScheduler
	}
	return name
}

// owner makes the Job the controller of an object.
func (b *builder) owner() metav1.OwnerReference { return ownerOf(b.job) }

func ownerOf(job *batchv1alpha1.Job) metav1.OwnerReference {
	return *metav1.NewControllerRef(job, batchv1alpha1.JobGroupVersionKind)
}
