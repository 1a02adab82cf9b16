// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// pod is a Pod of a container.
func pod(name string, options ...func(*schedulertesting.PodWrapper)) *corev1.Pod {
	w := schedulertesting.MakePod().Name(name).Namespace("ns").UID(name).Container("image")
	for _, option := range options {
		option(w)
	}
	return w.Obj()
}

func inRole(role string) func(*schedulertesting.PodWrapper) {
	return func(w *schedulertesting.PodWrapper) { w.Label(schedulingv1alpha1.LabelRole, role) }
}

func TestClassify(t *testing.T) {
	small, role := pod("small"), pod("role", inRole("ps"))
	sameAsSmall := pod("same", func(w *schedulertesting.PodWrapper) { w.Label("task", "7") })
	sameAsSmall.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "INDEX", Value: "7"}}
	sameAsSmall.Status.NominatedNodeName = "node"
	large := pod("large", func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{"cpu": "1"}) })
	port := pod("port", func(w *schedulertesting.PodWrapper) { w.HostPort(80) })
	pods := []*corev1.Pod{small, sameAsSmall, role, large, port}
	var keys []string
	for _, pod := range pods {
		keys = append(keys, ClassKey(pod, podgroup.RoleOf(pod)))
	}
	classes, err := classify(dialect.Key{}, pods, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	for _, c := range classes {
		var names []string
		for _, pod := range c.members {
			names = append(names, pod.Name)
		}
		got = append(got, names)
	}
	want := [][]string{{"small", "same"}, {"role"}, {"large"}, {"port"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want, +got):\n%s", diff)
	}
}

// TestClassesAreNotComparedForLongerThanATurn: members of many kinds have many terms and ports,
// and everybody waits for the turn.
func TestClassesAreNotComparedForLongerThanATurn(t *testing.T) {
	alike := map[string]string{"app": "same"}
	var pods []*corev1.Pod
	var keys []string
	for _, name := range []string{"a", "b", "c"} {
		pods = append(pods, pod(name, func(w *schedulertesting.PodWrapper) {
			w.Labels(alike).HostPort(80).PodAffinity("zone", &metav1.LabelSelector{MatchLabels: alike}, schedulertesting.PodAffinityWithRequiredReq)
		}))
		keys = append(keys, name)
	}
	classes, err := classify(dialect.Key{}, pods, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, isOverdue := range []bool{false, true} {
		over := func() bool { return isOverdue }
		wantLevels, wantRepelled := []planner.Level{{Key: "zone", Required: true}}, [][]int{{1, 2}, {0, 2}, {0, 1}}
		if isOverdue {
			wantLevels, wantRepelled = nil, make([][]int, 3)
		}
		if diff := cmp.Diff(wantLevels, podclass.Levels(nil, wantsOf(classes), nil, over)); diff != "" {
			t.Errorf("overdue %t: what attracts all (-want, +got):\n%s", isOverdue, diff)
		}
		if diff := cmp.Diff(wantRepelled, podclass.Repulsion(wantsOf(classes), over)); diff != "" {
			t.Errorf("overdue %t: who repels whom (-want, +got):\n%s", isOverdue, diff)
		}
	}
}
