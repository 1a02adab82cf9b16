// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package implicit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

// situation is what is known of a group of Pods.
type situation struct {
	// asks says that the namespace has the label.
	asks bool
	name string
	// group is the PodGroup with this name; nil if there is none. If the name is for one Job of a JobSet, whole is the
	// JobSet's own PodGroup.
	group, whole *schedulingv1alpha1.PodGroup
	// implicit says how the name follows from the labels of the Pods; nil if there are no Pods.
	implicit *podgroup.Implicit
	pods     []*corev1.Pod
	// pod is one of them.
	pod *corev1.Pod
	// owner is the object that the Pods name as their owner, nil if no cache has it.
	owner *unstructured.Unstructured
}

// step is the next action for a PodGroup: create, change or delete it. The zero step does nothing.
type step struct {
	create *schedulingv1alpha1.PodGroup
	// uid is that of the PodGroup that is changed or deleted.
	uid types.UID
	// minMember is the new one, 0 for none.
	minMember int32
	remove    bool
}

// decide returns what to do with the PodGroup of some Pods.
func decide(s situation) step {
	switch {
	case s.group != nil && (!isOurs(s.group) || s.group.DeletionTimestamp != nil):
		return step{}
	case len(s.pods) == 0 && s.group == nil:
		return step{}
	case len(s.pods) == 0:
		return step{remove: true, uid: s.group.UID}
	case s.owner == nil, s.owner.GetDeletionTimestamp() != nil:
		return step{} // the Pods wait for it, or are about to be deleted with it
	case s.group != nil && !metav1.IsControlledBy(s.group, s.owner):
		return step{remove: true, uid: s.group.UID} // the owner was recreated with the same name
	case s.group == nil && !s.isWanted():
		return step{}
	}
	minimum, policy := wants(s)
	switch {
	case s.group == nil:
		return step{create: s.make(minimum, policy)}
	case s.group.Spec.MinMember != minimum && s.group.Spec.SchedulingPolicy == schedulingv1alpha1.PolicyGang:
		return step{minMember: minimum, uid: s.group.UID}
	default:
		return step{}
	}
}

// Label and value of the PodGroups that this package makes.
const (
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = "lockstep-controller"
)

// isOurs reports whether this package has made a PodGroup.
func isOurs(group *schedulingv1alpha1.PodGroup) bool {
	return group.Labels[labelManagedBy] == managedBy && len(group.Spec.MemberLabels) > 0
}

// isWanted reports whether Pods without a PodGroup should get one: at least one of them has not ended. For a Job of a
// JobSet, the decision for the JobSet holds.
func (s *situation) isWanted() bool {
	if !slices.ContainsFunc(s.pods, func(pod *corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
	}) {
		return false
	}
	if s.implicit.PerJob {
		return s.whole != nil && s.whole.Spec.SchedulingPolicy == schedulingv1alpha1.PolicyGangPerJob && metav1.IsControlledBy(s.whole, s.owner)
	}
	return s.asks
}

// make returns the PodGroup to create.
func (s *situation) make(minimum int32, policy schedulingv1alpha1.SchedulingPolicy) *schedulingv1alpha1.PodGroup {
	isController := true
	return &schedulingv1alpha1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.pod.Namespace,
			Name:      s.name,
			Labels:    map[string]string{labelManagedBy: managedBy},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: s.owner.GetAPIVersion(), Kind: s.owner.GetKind(), Name: s.owner.GetName(), UID: s.owner.GetUID(), Controller: &isController,
			}},
		},
		Spec: schedulingv1alpha1.PodGroupSpec{
			MinMember:        minimum,
			MemberLabels:     s.implicit.MemberLabels(s.pod),
			SchedulingPolicy: policy,

			ExpectedRuntimeSeconds: expectedRuntime(s.owner),
		},
	}
}
