// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	configv1alpha1 "github.com/lockstep-k8s/lockstep/apis/config/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/kube"
)

func TestGapsOfAProfile(t *testing.T) {
	ours := []string{Name}
	preemption := []string{"DefaultPreemption"}
	whole := kube.Enabled{PreFilter: ours, Filter: ours, PostFilter: preemption}
	tests := map[string]struct {
		enabled         kube.Enabled
		ours, protected bool
		want            []string // a part of each line
	}{
		"all is well": {enabled: whole, ours: true, protected: true},
		"DefaultPreemption is under postFilter only": {enabled: whole, ours: true, want: []string{"enable DefaultPreemption under plugins.multiPoint"}},
		"so it is in a profile without the plugin": {
			enabled: kube.Enabled{PostFilter: preemption},
			want:    []string{"enable DefaultPreemption under plugins.multiPoint"},
		},
		"no preemption needs no protection": {enabled: kube.Enabled{PreFilter: ours, Filter: ours}, ours: true},
		"the plugin is under preEnqueue only": {
			enabled: kube.Enabled{}, ours: true, want: []string{"enable Coscheduling under plugins.multiPoint"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := gaps(tc.enabled, tc.ours, tc.protected)
			if len(got) != len(tc.want) {
				t.Fatalf("said %q, want %d lines", got, len(tc.want))
			}
			for i, want := range tc.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("said %q, want it to say %q", got[i], want)
				}
			}
		})
	}
}

// TestProfilesThatServeOtherPodGroupAPIsAreRefused: PodGroups are served by a scheduler, not by one of its profiles.
func TestProfilesThatServeOtherPodGroupAPIsAreRefused(t *testing.T) {
	with := func(mode configv1alpha1.PodGroupAPIMode) *Coscheduling {
		args := configv1alpha1.CoschedulingArgs{PodGroupAPIs: configv1alpha1.PodGroupAPIs{Volcano: configv1alpha1.VolcanoAPI{Mode: mode}}}
		return &Coscheduling{args: &args}
	}
	if err := areOfOneMind(map[string]*Coscheduling{"a": with("On"), "b": with("On")}); err != nil {
		t.Errorf("two profiles that agree are refused by %v", err)
	}
	want := "the profiles a and c have other arguments of plugin Coscheduling in the field podGroupAPIs: they must be the same in all profiles"
	if err := areOfOneMind(map[string]*Coscheduling{"a": with("On"), "b": with("On"), "c": with("Off")}); err == nil || err.Error() != want {
		t.Errorf("profiles that don't are refused by %v, want %s", err, want)
	}
	other := with("On")
	other.args.Reservations.MaxPercent = new(int32)
	if err := areOfOneMind(map[string]*Coscheduling{"a": with("On"), "b": other}); err == nil || !strings.Contains(err.Error(), "in the field reservations") {
		t.Errorf("profiles that reserve other shares are refused by %v", err)
	}
}
