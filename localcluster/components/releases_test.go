// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package components

import (
	"slices"
	"strings"
	"testing"
)

func TestEachReleaseReportsItsPinnedVersion(t *testing.T) {
	for _, r := range Releases() {
		files, err := r.program(APIServer).Files()
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(files["go.mod"]), "k8s.io/kubernetes "+r.Version+"\n") {
			t.Errorf("pins/%s.mod does not require k8s.io/kubernetes %s", r.pin, r.Version)
		}
		if !strings.HasPrefix(r.Version, "v"+r.Minor+".") {
			t.Errorf("the release %s is of version %s", r.Minor, r.Version)
		}
	}
}

// TestAnOlderControlPlaneDiffersInTwoPrograms: what else there is needs no second build.
func TestAnOlderControlPlaneDiffersInTwoPrograms(t *testing.T) {
	newest := ControlPlane(Newest())
	for _, r := range Releases()[1:] {
		var differ []string
		for i, c := range ControlPlane(r) {
			if c != newest[i] {
				differ = append(differ, c.Name)
			}
		}
		if want := []string{APIServer, ControllerManager}; !slices.Equal(differ, want) {
			t.Errorf("of %s differ %v, want %v", r.Minor, differ, want)
		}
	}
}

func TestFindRelease(t *testing.T) {
	tests := map[string]struct {
		want    string
		wantErr string
	}{
		"1.36":   {want: "v1.36.3"},
		"":       {want: KubernetesVersion},
		"1.3":    {wantErr: `"1.3" is not known: it is one of 1.37, 1.36, 1.35 and 1.34`},
		"v1.36":  {wantErr: `"v1.36" is not known`},
		"1.36.3": {wantErr: `"1.36.3" is not known`},
	}
	for minor, tc := range tests {
		t.Run(minor, func(t *testing.T) {
			got, err := FindRelease(minor)
			if got.Version != tc.want || (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("FindRelease = %q, %v; want %q, error %q", got.Version, err, tc.want, tc.wantErr)
			}
		})
	}
}
