// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/json"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// IsGang reports whether the attempts of a Framework have a PodGroup: spec.gang is set, or the Pod template of a role
// names the gang scheduler. A template that can't be decoded names none.
func IsGang(spec *frameworkv1.FrameworkSpec, gangSchedulerName string) bool {
	if spec.Gang != nil {
		return true
	}
	if gangSchedulerName == "" {
		return false
	}
	return slices.ContainsFunc(spec.TaskRoles, func(role frameworkv1.TaskRoleSpec) bool {
		return schedulerName(role.Task.Pod.Raw) == gangSchedulerName
	})
}

// schedulerName is spec.schedulerName of a Pod template in JSON, and empty where
// there is none.
func schedulerName(template []byte) string {
	var pod struct {
		Spec struct {
			SchedulerName string `json:"schedulerName"`
		} `json:"spec"`
	}
	if len(template) == 0 || json.Unmarshal(template, &pod) != nil {
		return ""
	}
	return pod.Spec.SchedulerName
}

// DesiredSpec returns the spec of the PodGroup of a Framework's attempt. active is,
// for each role, how many of its tasks are in spec and not Completed. There is
// no PodGroup, and false is returned, while the Framework has no task.
//
// A Completed task has no Pod any more, so no minimum is above the number of
// active tasks: without this, a retried task would wait for members that never
// come back. minMember is at least 1 all the same, as it must be; the minimum of
// a role without active tasks is left out.
func DesiredSpec(spec *frameworkv1.FrameworkSpec, active map[string]int32) (schedulingv1alpha1.PodGroupSpec, bool) {
	gang := spec.Gang
	if gang == nil {
		gang = &frameworkv1.GangSpec{}
	}

	var tasks, activeTasks int32
	var minRoleMember map[string]int32
	for _, role := range spec.TaskRoles {
		left := min(active[role.Name], role.TaskNumber)
		tasks += role.TaskNumber
		activeTasks += left
		if role.MinMember == nil || left < 1 {
			continue
		}
		if minRoleMember == nil {
			minRoleMember = map[string]int32{}
		}
		minRoleMember[role.Name] = max(1, min(*role.MinMember, left))
	}
	if tasks == 0 {
		return schedulingv1alpha1.PodGroupSpec{}, false
	}

	minMember := tasks
	if gang.MinMember != nil {
		minMember = *gang.MinMember
	}
	desired := schedulingv1alpha1.PodGroupSpec{
		MinMember:         max(1, min(minMember, activeTasks)),
		MinRoleMember:     minRoleMember,
		PriorityClassName: gang.PriorityClassName,
		Queue:             gang.Queue,
		Topology:          slices.Clone(gang.Topology),
		DisruptionMode:    gang.DisruptionMode,
	}
	if desired.Queue == "" {
		desired.Queue = schedulingv1alpha1.DefaultQueue
	}
	if desired.DisruptionMode == "" {
		desired.DisruptionMode = schedulingv1alpha1.DisruptGang
	}
	return desired, true
}
