// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestUntilWhenANodeIsInUse: Pods end after as many hours as their annotation says, counted from noon. Nobody knows
// when a Pod without the annotation ends.
func TestUntilWhenANodeIsInUse(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	runs := func(hours string) *corev1.Pod {
		return schedulertesting.MakePod().Name("pod-"+hours).UID("pod-"+hours).Annotation("hours", hours).Obj()
	}
	of := func(kind string) *corev1.Pod {
		return schedulertesting.MakePod().Name(kind).UID(kind).OwnerReference("owner", schema.GroupVersionKind{Kind: kind}).Obj()
	}
	deleted := runs("9h")
	deleted.DeletionTimestamp = &metav1.Time{Time: noon}
	looks := 0
	endOf := func(pod *corev1.Pod) time.Time {
		looks++
		hours, err := time.ParseDuration(pod.Annotations["hours"])
		if err != nil {
			return time.Time{}
		}
		return noon.Add(hours)
	}
	tests := map[string]struct {
		pods    []*corev1.Pod
		hours   int // 0: not at all
		unknown bool
	}{
		"no Pod":                               {},
		"the last Pod counts":                  {pods: []*corev1.Pod{runs("1h"), runs("3h"), runs("2h")}, hours: 3},
		"a Pod of a DaemonSet does not":        {pods: []*corev1.Pod{runs("1h"), of("DaemonSet")}, hours: 1},
		"a static Pod does not":                {pods: []*corev1.Pod{runs("1h"), of("Node")}, hours: 1},
		"a Pod that is being deleted does not": {pods: []*corev1.Pod{runs("1h"), deleted}, hours: 1},
		"a service may run for ever":           {pods: []*corev1.Pod{runs("1h"), of("ReplicaSet")}, unknown: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			nodes := []fwk.NodeInfo{framework.NewNodeInfo(tc.pods...)}
			var kept Passes
			want := lastEnd{unknown: tc.unknown}
			if tc.hours > 0 {
				want.at = noon.Add(time.Duration(tc.hours) * time.Hour)
			}
			if got := kept.lastEnds(nodes, noon, endOf)[0].is; got != want {
				t.Fatalf("the last end is %+v, want %+v", got, want)
			}
			if looks = 0; kept.lastEnds(nodes, noon, endOf)[0].is != want || looks > 0 {
				t.Errorf("%d Pods are looked at again, although nothing has changed", looks)
			}
			if kept.lastEnds(nodes, noon.Add(4*time.Hour), endOf); tc.hours > 0 && looks == 0 {
				t.Error("no Pod is looked at again, although all should have ended")
			}
		})
	}
}
