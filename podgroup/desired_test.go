// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

const gangScheduler = "lockstep-scheduler"

func roleWithTemplate(name, template string) frameworkv1.TaskRoleSpec {
	return frameworkv1.TaskRoleSpec{
		Name:       name,
		TaskNumber: 1,
		Task:       frameworkv1.TaskSpec{Pod: runtime.RawExtension{Raw: []byte(template)}},
	}
}

func TestIsGang(t *testing.T) {
	tests := map[string]struct {
		gang          *frameworkv1.GangSpec
		templates     []string
		schedulerName string
		want          bool
	}{
		"no gang and no template": {
			schedulerName: gangScheduler,
			want:          false,
		},
		"an empty gang is a gang": {
			gang:          &frameworkv1.GangSpec{},
			templates:     []string{`{"spec":{"schedulerName":"default-scheduler"}}`},
			schedulerName: gangScheduler,
			want:          true,
		},
		"one role of several names the gang scheduler": {
			templates:     []string{`{"spec":{}}`, `{"spec":{"schedulerName":"lockstep-scheduler"}}`},
			schedulerName: gangScheduler,
			want:          true,
		},
		"another scheduler": {
			templates:     []string{`{"spec":{"schedulerName":"default-scheduler"}}`},
			schedulerName: gangScheduler,
			want:          false,
		},
		"the configured name counts, not the default": {
			templates:     []string{`{"spec":{"schedulerName":"lockstep-scheduler"}}`},
			schedulerName: "team-scheduler",
			want:          false,
		},
		"a template without schedulerName is no gang, even without a gang scheduler": {
			templates:     []string{`{"spec":{}}`},
			schedulerName: "",
			want:          false,
		},
		"keys are case-sensitive, as for the API server": {
			templates:     []string{`{"spec":{"SchedulerName":"lockstep-scheduler"}}`},
			schedulerName: gangScheduler,
			want:          false,
		},
		"a template without spec": {
			templates:     []string{`{"metadata":{"labels":{"a":"b"}}}`, `{}`, `null`, ""},
			schedulerName: gangScheduler,
			want:          false,
		},
		"templates that can't be read": {
			templates:     []string{`{"spec":`, `{"spec":"lockstep-scheduler"}`, `{"spec":{"schedulerName":7}}`, `[]`},
			schedulerName: gangScheduler,
			want:          false,
		},
		"a malformed template does not hide another role's": {
			templates:     []string{`{"spec":[]}`, `{"spec":{"schedulerName":"lockstep-scheduler"}}`},
			schedulerName: gangScheduler,
			want:          true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &frameworkv1.FrameworkSpec{Gang: tc.gang}
			for _, template := range tc.templates {
				spec.TaskRoles = append(spec.TaskRoles, roleWithTemplate("worker", template))
			}
			if got := IsGang(spec, tc.schedulerName); got != tc.want {
				t.Errorf("IsGang: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestDesiredSpec(t *testing.T) {
	type role struct {
		name       string
		taskNumber int32
		minMember  *int32
	}
	tests := map[string]struct {
		gang   *frameworkv1.GangSpec
		roles  []role
		active map[string]int32
		want   *schedulingv1alpha1.PodGroupSpec
	}{
		"all tasks by default": {
			roles:  []role{{"ps", 2, nil}, {"worker", 8, nil}},
			active: map[string]int32{"ps": 2, "worker": 8},
			want:   &schedulingv1alpha1.PodGroupSpec{MinMember: 10, Queue: "default", DisruptionMode: "Gang"},
		},
		"all fields of gang are copied": {
			gang: &frameworkv1.GangSpec{
				MinMember:         ptr.To[int32](4),
				PriorityClassName: "high",
				Queue:             "research",
				Topology:          []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}},
				DisruptionMode:    schedulingv1alpha1.DisruptPod,
			},
			roles:  []role{{"worker", 8, ptr.To[int32](3)}},
			active: map[string]int32{"worker": 8},
			want: &schedulingv1alpha1.PodGroupSpec{
				MinMember:         4,
				MinRoleMember:     map[string]int32{"worker": 3},
				PriorityClassName: "high",
				Queue:             "research",
				Topology:          []schedulingv1alpha1.TopologyConstraint{{Key: "rack", Mode: schedulingv1alpha1.TopologyRequired}},
				DisruptionMode:    schedulingv1alpha1.DisruptPod,
			},
		},
		"no minimum is above the tasks that are left": {
			gang:   &frameworkv1.GangSpec{MinMember: ptr.To[int32](9)},
			roles:  []role{{"ps", 2, ptr.To[int32](2)}, {"worker", 8, ptr.To[int32](6)}},
			active: map[string]int32{"ps": 1, "worker": 5},
			want: &schedulingv1alpha1.PodGroupSpec{
				MinMember: 6, MinRoleMember: map[string]int32{"ps": 1, "worker": 5}, Queue: "default", DisruptionMode: "Gang",
			},
		},
		"minMember below the tasks that are left stays": {
			gang:   &frameworkv1.GangSpec{MinMember: ptr.To[int32](3)},
			roles:  []role{{"worker", 8, nil}},
			active: map[string]int32{"worker": 5},
			want:   &schedulingv1alpha1.PodGroupSpec{MinMember: 3, Queue: "default", DisruptionMode: "Gang"},
		},
		"a role whose tasks all completed asks for none": {
			roles:  []role{{"ps", 1, ptr.To[int32](1)}, {"worker", 2, ptr.To[int32](2)}},
			active: map[string]int32{"ps": 0, "worker": 1},
			want: &schedulingv1alpha1.PodGroupSpec{
				MinMember: 1, MinRoleMember: map[string]int32{"worker": 1}, Queue: "default", DisruptionMode: "Gang",
			},
		},
		"all tasks completed": {
			roles:  []role{{"worker", 2, ptr.To[int32](2)}},
			active: nil,
			want:   &schedulingv1alpha1.PodGroupSpec{MinMember: 1, Queue: "default", DisruptionMode: "Gang"},
		},
		"tasks that are not in spec do not count": {
			roles:  []role{{"worker", 2, nil}},
			active: map[string]int32{"worker": 5, "gone": 7},
			want:   &schedulingv1alpha1.PodGroupSpec{MinMember: 2, Queue: "default", DisruptionMode: "Gang"},
		},
		"an empty role beside others": {
			roles:  []role{{"worker", 2, nil}, {"evaluator", 0, nil}},
			active: map[string]int32{"worker": 2},
			want:   &schedulingv1alpha1.PodGroupSpec{MinMember: 2, Queue: "default", DisruptionMode: "Gang"},
		},
		"no roles": {
			gang: &frameworkv1.GangSpec{MinMember: ptr.To[int32](3)},
			want: nil,
		},
		"only empty roles": {
			gang:  &frameworkv1.GangSpec{},
			roles: []role{{"worker", 0, nil}},
			want:  nil,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &frameworkv1.FrameworkSpec{Gang: tc.gang}
			for _, r := range tc.roles {
				spec.TaskRoles = append(spec.TaskRoles, frameworkv1.TaskRoleSpec{Name: r.name, TaskNumber: r.taskNumber, MinMember: r.minMember})
			}
			got, ok := DesiredSpec(spec, tc.active)
			if ok != (tc.want != nil) {
				t.Fatalf("DesiredSpec: got a PodGroup %v, want %v", ok, tc.want != nil)
			}
			if tc.want == nil {
				return
			}
			if diff := cmp.Diff(*tc.want, got); diff != "" {
				t.Errorf("DesiredSpec (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestDesiredSpecSharesNothingWithTheFramework(t *testing.T) {
	spec := &frameworkv1.FrameworkSpec{
		Gang:      &frameworkv1.GangSpec{Topology: []schedulingv1alpha1.TopologyConstraint{{Key: "zone", Mode: schedulingv1alpha1.TopologyPreferred}}},
		TaskRoles: []frameworkv1.TaskRoleSpec{{Name: "worker", TaskNumber: 1}},
	}
	got, _ := DesiredSpec(spec, map[string]int32{"worker": 1})
	got.Topology[0].Key = "rack"
	if key := spec.Gang.Topology[0].Key; key != "zone" {
		t.Errorf("topology of the Framework: got %q, want zone: it comes from a cache and must not be written", key)
	}
}
