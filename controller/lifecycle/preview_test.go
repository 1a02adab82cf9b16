// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
)

func TestAPreviewIsMadeAsTheFirstAttemptIs(t *testing.T) {
	f := framework(role("w", 2))
	f.Spec.ExecutionType = frameworkv1.ExecutionCreate
	f.Spec.Gang = &frameworkv1.GangSpec{PriorityClassName: "high"}
	f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(`{"metadata":{"labels":{"task":"{{FC_TASK_INDEX}}"}},"spec":{"containers":[{"name":"main"}]}}`)
	group, pods, err := Preview(f, Options{GangSchedulerName: "lockstep-scheduler"})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods) != 2 || group.Name != frameworkv1.PodGroupName(f.Name) || group.Spec.MinMember != 2 {
		t.Fatalf("%d Pods in %+v", len(pods), group)
	}
	for name, got := range map[string]string{
		"the class of its gang": pods[1].Spec.PriorityClassName, "the gang scheduler": pods[1].Spec.SchedulerName,
		"its place in the template": pods[1].Labels["task"], "its index as a label": pods[1].Labels[frameworkv1.KeyTaskIndex],
		"its Framework as a label": pods[1].Labels[frameworkv1.KeyFrameworkName], "its group": pods[1].Labels[schedulingv1alpha1.LabelPodGroup],
	} {
		want := map[string]string{"the class of its gang": "high", "the gang scheduler": "lockstep-scheduler", "its place in the template": "1",
			"its index as a label": "1", "its Framework as a label": f.Name, "its group": group.Name}[name]
		if got != want {
			t.Errorf("a Pod has not %s: got %q, want %q", name, got, want)
		}
	}
	if pods[0].UID == pods[1].UID || !podgroup.IsMember(group, pods[0]) {
		t.Error("the Pods are not members of their group, each its own")
	}
}

func TestThereIsNoPreviewOfWhatCanNotBeMade(t *testing.T) {
	for name, f := range map[string]*frameworkv1.Framework{"one without tasks": framework(role("w", 0)), "one whose template is none": framework(role("w", 1))} {
		f.Spec.TaskRoles[0].Task.Pod.Raw = []byte(`{"spec":1}`)
		if _, _, err := Preview(f, Options{}); err == nil {
			t.Errorf("%s has a preview", name)
		}
	}
}
