// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dialect

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// KeyOfOwn returns the key of the gang of Lockstep's PodGroup.
func KeyOfOwn(group *schedulingv1alpha1.PodGroup) Key {
	return Key{Dialect: Own, Namespace: group.Namespace, Name: group.Name}
}

// FromOwn returns the Group for a PodGroup of Lockstep. The two share memory, so neither may be changed.
func FromOwn(group *schedulingv1alpha1.PodGroup) *Group {
	var halt Halt
	if group.DeletionTimestamp != nil {
		halt = haltOfDeleted
	}
	owner := podgroup.Owner(group)
	runtime, warnings := runtimeOf(group, podgroup.Runtimes{Max: group.Spec.MaxRuntimeSeconds, Expected: group.Spec.ExpectedRuntimeSeconds}, owner != nil)
	read := &Group{
		Key:             KeyOfOwn(group),
		UID:             group.UID,
		ResourceVersion: group.ResourceVersion,
		Generation:      group.Generation,
		Created:         group.CreationTimestamp.Time,
		Owner:           owner,
		Warnings:        warnings,
		MemberLabels:    group.Spec.MemberLabels,
		Policy:          group.Spec.SchedulingPolicy,
		Spec: Spec{
			Minimum:           podgroup.MinimumOf(&group.Spec),
			PriorityClassName: group.Spec.PriorityClassName,
			Topology:          group.Spec.Topology,
			DisruptionMode:    group.Spec.DisruptionMode,
			Provision:         provisionOf(provision.Of(group.Spec.MinResources), 0, group.Annotations),
			Runtime:           runtime,
			Staged:            IsStaged(group),
			Halt:              halt,
		},
		Conditions:    group.Status.Conditions,
		ExpectedStart: group.Status.ExpectedStart,
	}
	if controller := metav1.GetControllerOfNoCopy(group); controller != nil && len(read.MemberLabels) > 0 {
		read.MadeFor, read.MadeForUID = controller.Kind, controller.UID
	}
	if policy := read.Policy; policy == schedulingv1alpha1.PolicyBasic || policy == schedulingv1alpha1.PolicyGangPerJob {
		read.Spec.Loose, read.Spec.DisruptionMode = true, schedulingv1alpha1.DisruptPod
	}
	return read
}
