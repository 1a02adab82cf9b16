// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	kubeflowv1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v1"
	kubeflowv2beta1 "github.com/lockstep-k8s/lockstep/apis/kubeflow/v2beta1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/internal/controlled"
)

// GroupOf returns the name of the group that a Pod's label names, in the Pod's namespace.
// The bool is false if it names none. Whether the Pod is a member of the group depends
// on the group.
func GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	name := pod.Labels[schedulingv1alpha1.LabelPodGroup]
	return types.NamespacedName{Namespace: pod.Namespace, Name: name}, name != ""
}

// RoleOf returns the role of a Pod in its group, empty if the Pod has none.
func RoleOf(pod *corev1.Pod) string {
	return pod.Labels[schedulingv1alpha1.LabelRole]
}

// IsMember reports whether a Pod is a member of a group. The caller has found the group in the Pod's namespace by the
// labels of the Pod (GroupsOf).
//
// If a controller creates the group for its own Pods, it controls both. So in a group with an Owner, a Pod is a member
// only if it has the same controller, by UID. That excludes Pods with copied labels and Pods of an earlier attempt. In
// a group without an Owner, the label alone decides.
//
// IsMember is a guard against accidents, not against users. A user who may create Pods in the namespace may set any
// owner references, and so make these Pods members of any group there.
func IsMember(group *schedulingv1alpha1.PodGroup, pod *corev1.Pod) bool {
	return IsMemberUnder(Owner(group), pod) && IsLinked(group.Spec.MemberLabels, pod)
}

// IsMemberUnder reports whether a Pod is a member of the group that its label names, if this is the group's Owner,
// nil if the group has none. See IsMember.
func IsMemberUnder(owner *metav1.OwnerReference, pod *corev1.Pod) bool {
	return owner == nil || controlled.By(owner.UID, pod)
}

// Owner returns the object that created the group for its own Pods: the ConfigMap of a Framework's attempt, a Volcano
// Job, or a training job of Kubeflow. It returns nil for every other group, even if the group has a controller, since
// its Pods may have other controllers. The result is part of the group and read only.
func Owner(group *schedulingv1alpha1.PodGroup) *metav1.OwnerReference {
	controller := metav1.GetControllerOfNoCopy(group)
	if controller == nil {
		return nil
	}
	kind := schema.FromAPIVersionAndKind(controller.APIVersion, controller.Kind)
	switch {
	case kind == corev1.SchemeGroupVersion.WithKind("ConfigMap"), kind == batchv1alpha1.JobGroupVersionKind, kubeflowv1.IsJob(kind),
		kind == kubeflowv2beta1.SchemeGroupVersion.WithKind(kubeflowv2beta1.MPIJobKind):
		return controller
	default:
		return nil
	}
}
