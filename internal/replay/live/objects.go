// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/replay/workload"
)

// label is on all objects of a replay.
const label = "lockstep.dev/replay"

// unit is the resource of the nodes.
const unit corev1.ResourceName = "nvidia.com/gpu"

// kind is a kind of PodGroup, and how a Pod names its group.
type kind struct {
	group, version    string
	label, annotation string
}

// kinds are the kinds of PodGroups that schedulers may use, by API group. The empty group is for schedulers that use
// none.
var kinds = map[string]kind{
	schedulingv1alpha1.GroupName: {group: schedulingv1alpha1.GroupName, version: "v1alpha1", label: schedulingv1alpha1.LabelPodGroup},
	"scheduling.x-k8s.io":        {group: "scheduling.x-k8s.io", version: "v1alpha1", label: "scheduling.x-k8s.io/pod-group"},
	"scheduling.volcano.sh":      {group: "scheduling.volcano.sh", version: "v1beta1", annotation: "scheduling.k8s.io/group-name"},
	"none":                       {},
}

// Kinds returns the values that Options.PodGroups may have.
func Kinds() []string { return slices.Sorted(maps.Keys(kinds)) }

func (k kind) resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.group, Version: k.version, Resource: schedulingv1alpha1.PodGroupPlural}
}

// podGroup returns the PodGroup of a job. Lockstep's PodGroup gets the limit of the job as an estimate; 0 means that
// there is none.
func (k kind) podGroup(number int, job *workload.Job, estimate int64) *unstructured.Unstructured {
	spec := map[string]any{"minMember": int64(job.Pods)}
	if estimate > 0 && k.group == schedulingv1alpha1.GroupName {
		spec["expectedRuntimeSeconds"] = estimate
	}
	group := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	group.SetGroupVersionKind(schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: "PodGroup"})
	group.SetName(jobName(number))
	group.SetLabels(map[string]string{label: "true"})
	return group
}

// pod is one of a job, for a node of the replay.
func (k kind) pod(number, index int, job *workload.Job, schedulerName string) *corev1.Pod {
	amount := corev1.ResourceList{unit: *resource.NewQuantity(int64(job.Units), resource.DecimalSI)}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("%s-%d", jobName(number), index),
			Labels:      map[string]string{label: "true"},
			Annotations: map[string]string{annotationJob: strconv.Itoa(number), annotationPod: strconv.Itoa(index)},
		},
		Spec: corev1.PodSpec{
			SchedulerName:                 schedulerName,
			RestartPolicy:                 corev1.RestartPolicyNever,
			NodeSelector:                  map[string]string{label: "true"},
			Tolerations:                   []corev1.Toleration{{Key: label, Operator: corev1.TolerationOpExists}},
			AutomountServiceAccountToken:  ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](0),
			Containers: []corev1.Container{{
				Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: amount, Limits: amount},
			}},
		},
	}
	if k.label != "" {
		pod.Labels[k.label] = jobName(number)
	}
	if k.annotation != "" {
		pod.Annotations[k.annotation] = jobName(number)
	}
	return pod
}

// These annotations of a Pod have its number in the job, and the number of the job in the workload.
const (
	annotationJob = label + "-job"
	annotationPod = label + "-pod"
)

func jobName(number int) string { return fmt.Sprintf("job-%07d", number) }

func nodeName(number int) string { return fmt.Sprintf("replay-%d", number) }

// node returns a node that KWOK simulates, both in KWOK's usual configuration and in that of lockstep-local.
func node(number, units int) *corev1.Node {
	has := corev1.ResourceList{
		unit:                *resource.NewQuantity(int64(units), resource.DecimalSI),
		corev1.ResourceCPU:  resource.MustParse("1k"),
		corev1.ResourcePods: *resource.NewQuantity(int64(max(110, units)), resource.DecimalSI),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        nodeName(number),
			Labels:      map[string]string{label: "true", "type": "kwok", corev1.LabelHostname: nodeName(number)},
			Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"},
		},
		Spec:   corev1.NodeSpec{Taints: []corev1.Taint{{Key: label, Effect: corev1.TaintEffectNoSchedule}}}, // no Pods of others
		Status: corev1.NodeStatus{Capacity: has, Allocatable: has},
	}
}
