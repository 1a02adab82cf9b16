// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podclass

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"
)

// TestLabelsThatASelectorReadsTellMembersApart, and no others.
func TestLabelsThatASelectorReadsTellMembersApart(t *testing.T) {
	type option = func(*schedulertesting.PodWrapper)
	selector := func(value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"index": value}}
	}
	away := func(value string, kind schedulertesting.PodAffinityKind) option {
		return func(w *schedulertesting.PodWrapper) { w.PodAntiAffinity("rack", selector(value), kind) }
	}
	spread := func(selector *metav1.LabelSelector, keys ...string) option {
		return func(w *schedulertesting.PodWrapper) {
			w.SpreadConstraint(1, "rack", corev1.DoNotSchedule, selector, nil, nil, nil, keys)
		}
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "train"}}
	tests := map[string]struct {
		option   option
		existing []string // indexes that Pods on nodes are away from
		want     []int    // classes of four members
	}{
		"nobody reads them":                   {want: []int{0, 0, 0, 0}},
		"an anti-affinity to the first":       {option: away("0", schedulertesting.PodAntiAffinityWithRequiredReq), want: []int{0, 1, 1, 1}},
		"a preferred one to the last":         {option: away("3", schedulertesting.PodAntiAffinityWithPreferredReq), want: []int{0, 0, 0, 3}},
		"an anti-affinity of a Pod on a node": {existing: []string{"2"}, want: []int{0, 0, 2, 0}},
		"several of Pods on nodes":            {existing: []string{"1", "2"}, want: []int{0, 1, 2, 0}},
		"a spread over all of the app":        {option: spread(app), want: []int{0, 0, 0, 0}},
		"a spread over Pods of one index":     {option: spread(selector("1")), want: []int{0, 1, 0, 0}},
		"a spread over Pods of each index":    {option: spread(app, "index"), want: []int{0, 1, 2, 3}},
		"an affinity to what all of them carry": {option: func(w *schedulertesting.PodWrapper) {
			w.PodAffinity("rack", app, schedulertesting.PodAffinityWithRequiredReq)
		}, want: []int{0, 0, 0, 0}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var pods []*corev1.Pod
			for i := range 4 {
				options := []option{func(w *schedulertesting.PodWrapper) { w.Label("app", "train").Label("index", fmt.Sprint(i)) }}
				if tc.option != nil {
					options = append(options, tc.option)
				}
				w := schedulertesting.MakePod().Name(fmt.Sprint(i)).Namespace("ns")
				for _, o := range options {
					o(w)
				}
				pods = append(pods, w.Obj())
			}
			var existing []labels.Selector
			for _, value := range tc.existing {
				existing = append(existing, labels.SelectorFromSet(labels.Set{"index": value}))
			}
			texts, err := LabelKeys(pods, []string{"same", "same", "same", "same"}, slices.Values(existing))
			if err != nil {
				t.Fatal(err)
			}
			var got []int
			first := make(map[string]int)
			for i, text := range texts {
				if _, known := first[text]; !known {
					first[text] = i
				}
				got = append(got, first[text])
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("classes of members (-want, +got):\n%s", diff)
			}
		})
	}
}

// TestManySelectorsOfOthersDoNotCount: comparing them would hold up all scheduling. A gang's own still do.
func TestManySelectorsOfOthersDoNotCount(t *testing.T) {
	for name, tc := range map[string]struct {
		own  int // selectors that each member has
		want int // classes
	}{
		"a gang without any":  {want: 1},
		"a gang with one":     {own: 1, want: 2},
		"a gang with as many": {own: 3000, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := schedulertesting.MakePod()
			for i := range tc.own {
				w.PodAntiAffinity("rack", &metav1.LabelSelector{MatchLabels: map[string]string{"index": fmt.Sprint(i)}}, schedulertesting.PodAntiAffinityWithRequiredReq)
			}
			affinity := w.Obj().Spec.Affinity
			var pods []*corev1.Pod
			var keys []string
			for i := range 3000 {
				pod := schedulertesting.MakePod().Name(fmt.Sprint(i)).Label("index", fmt.Sprint(i)).Obj()
				pod.Spec.Affinity = affinity
				pods, keys = append(pods, pod), append(keys, "same")
			}
			var existing []labels.Selector
			for i := range 3000 {
				existing = append(existing, labels.SelectorFromSet(labels.Set{"index": fmt.Sprint(i)}))
			}
			texts, err := LabelKeys(pods, keys, slices.Values(existing))
			if got := sets.New(texts...).Len(); err != nil || got != tc.want {
				t.Errorf("%d classes, want %d: %v", got, tc.want, err)
			}
		})
	}
}

// TestPortsOfANode: a sidecar keeps its port, an init container that ends does not.
func TestPortsOfANode(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	port := func(n int32) []corev1.ContainerPort {
		return []corev1.ContainerPort{{HostPort: n, Protocol: corev1.ProtocolTCP}, {ContainerPort: 1}}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		InitContainers: []corev1.Container{{Ports: port(80)}, {Ports: port(81), RestartPolicy: &always}},
		Containers:     []corev1.Container{{Ports: port(82)}},
	}}
	want := sets.New(HostPort{Protocol: corev1.ProtocolTCP, Port: 81}, HostPort{Protocol: corev1.ProtocolTCP, Port: 82})
	if diff := cmp.Diff(want, HostPorts(pod)); diff != "" {
		t.Errorf("ports (-want, +got):\n%s", diff)
	}
}
