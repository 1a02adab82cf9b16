// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
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
		existing []option
		want     []int // classes of four members
	}{
		"nobody reads them":                   {want: []int{0, 0, 0, 0}},
		"an anti-affinity to the first":       {option: away("0", schedulertesting.PodAntiAffinityWithRequiredReq), want: []int{0, 1, 1, 1}},
		"a preferred one to the last":         {option: away("3", schedulertesting.PodAntiAffinityWithPreferredReq), want: []int{0, 0, 0, 3}},
		"an anti-affinity of a Pod on a node": {existing: []option{away("2", schedulertesting.PodAntiAffinityWithRequiredReq)}, want: []int{0, 0, 2, 0}},
		"several of Pods on nodes":            {existing: []option{away("1", schedulertesting.PodAntiAffinityWithRequiredReq), away("2", schedulertesting.PodAntiAffinityWithRequiredReq)}, want: []int{0, 1, 2, 0}},
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
				pods = append(pods, pod(fmt.Sprint(i), options...))
			}
			existing := func(yield func(fwk.PodInfo) bool) {
				for _, o := range tc.existing {
					info, err := framework.NewPodInfo(pod("existing", o))
					if err != nil {
						t.Fatal(err)
					}
					if !yield(info) {
						return
					}
				}
			}
			texts, err := labelKeys(pods, []string{"same", "same", "same", "same"}, existing)
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
