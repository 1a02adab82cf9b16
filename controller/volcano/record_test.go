// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"testing"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for _, stored := range []string{"", "there=0", "there=0-2 succeeded=3,5 failed=4", "succeeded=0-9", "failed=1,3,5,7-9"} {
		status := &batchv1alpha1.JobStatus{ControlledResources: map[string]string{"pods-a": stored}}
		if got := readRecord(status, "a", 10).String(); got != stored {
			t.Errorf("%q is read as %q", stored, got)
		}
	}
}

func TestWhatMakesNoSenseInARecordIsLeftOut(t *testing.T) {
	tests := map[string]string{
		"there=x":                        "",
		"there=3-1":                      "",
		"there=-5":                       "",
		"there=2-4000000000":             "",
		"there=0-2000000000":             "there=0-9",
		"there=8-12 nonsense failed=1,x": "there=8-9 failed=1",
	}
	for stored, want := range tests {
		status := &batchv1alpha1.JobStatus{ControlledResources: map[string]string{"pods-a": stored}}
		if got := readRecord(status, "a", 10).String(); got != want {
			t.Errorf("%q is read as %q, want %q", stored, got, want)
		}
	}
}

func TestTheReachOfARecordIsThatOfItsHighestIndex(t *testing.T) {
	tests := map[string]int32{
		"": 0, "there=0": 1, "there=0-2 succeeded=7": 8, "failed=99999999999999": 0, "failed=2000000000": batchv1alpha1.MaxReplicas + 1,
	}
	for stored, want := range tests {
		status := &batchv1alpha1.JobStatus{ControlledResources: map[string]string{"pods-a": stored}}
		if got := reachOf(status, "a"); got != want {
			t.Errorf("%q reaches %d, want %d", stored, got, want)
		}
	}
}
