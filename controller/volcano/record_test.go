// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

func TestARecordIsReadAsItWasWritten(t *testing.T) {
	for _, stored := range []string{"", "there=0", "there=0-2 succeeded=3,5 failed=4", "succeeded=0-9", "failed=1,3,5,7-9",
		"failed=0-9 failed@1792486800=0,4-5 failed@1792486801=1 failed@1792486700/3=2", "succeeded=0-9 done@1792486800=7", "there=0-3 evicted@1792486800=1,3 evicted@1792486801=2", "there=0 joined=3-5",
	} {
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
		"failed=1 failed@x=1":            "failed=1",
		"failed=1 failed@5/x=1":          "failed=1",
		"failed=1 failed@-5=1":           "failed=1",
		"failed=1 failed@5=1,12":         "failed=1 failed@5=1",
		"done@5=10 done@9":               "",
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
		"": 0, "there=0": 1, "there=0-2 succeeded=7": 8, "failed=99999999999999": 0, "failed=2000000000": batchv1alpha1.MaxReplicas,
		"failed=3 failed@1792486800/137=3": 4,
	}
	for stored, want := range tests {
		status := &batchv1alpha1.JobStatus{ControlledResources: map[string]string{"pods-a": stored}}
		if got := reachOf(status, "a"); got != want {
			t.Errorf("%q reaches %d, want %d", stored, got, want)
		}
	}
}

func TestTheTimesOfFailuresTakeLittleRoom(t *testing.T) {
	const pods, delay = 10_000, 1000
	r := readRecord(nil, "", pods)
	for index := range int32(pods) {
		r.waits.add(index, moment{1792486800 + int64(index)*delay/pods, 1 + index%2})
	}
	before := r.waits
	for range 5 {
		status := &batchv1alpha1.JobStatus{ControlledResources: map[string]string{"pods-a": r.String()}}
		if n := strings.Count(r.String(), "@"); n > 2*maxMoments {
			t.Fatalf("there are %d times on record, want %d at most for each of two codes", n, maxMoments)
		}
		r = readRecord(status, "a", pods)
	}
	for index, was := range before {
		is := r.waits[index]
		if late := is.at - was.at; late < 0 || late > delay/8 || is.code != was.code {
			t.Fatalf("index %d failed with %d at %d, and %d at %d is on record", index, was.code, was.at, is.code, is.at)
		}
	}
}

// TestEachExitCodeHasAMomentOfItsOwn: of each code that a policy names, and of all others, the
// first failure of a task is on record.
func TestEachExitCodeHasAMomentOfItsOwn(t *testing.T) {
	policies := []batchv1alpha1.LifecyclePolicy{
		in("20s", onCode(3, busv1alpha1.ActionAbortJob)),
		in("60s", on(busv1alpha1.EventPodFailed, busv1alpha1.ActionCompleteJob)),
	}
	tests := map[string]struct {
		// codes are those of the indexes, which fail a second after each other.
		codes []int32
		// coded and other are the indexes whose moments are on record.
		coded, other int
	}{
		"index 0 has the code":                     {codes: []int32{3, 1}, coded: 0, other: 1},
		"index 0 has another":                      {codes: []int32{1, 3}, coded: 1, other: 0},
		"the second of each does not count":        {codes: []int32{3, 3, 1, 1}, coded: 0, other: 2},
		"nor does it with another code in between": {codes: []int32{1, 3, 1, 3}, coded: 1, other: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := given(t, withSpec(job(ofTask("a", 5, policies...)), func(s *batchv1alpha1.JobSpec) { s.MinAvailable = 1 }), nil)
			s.until(rr).after(1)
			begun := s.now
			for index, code := range tc.codes {
				s.now = begun.Add(time.Duration(index) * time.Second)
				s.setPhase(podName("j", "a", int32(index)), corev1.PodFailed, code)
			}
			s.after(1)
			at := func(index int) int64 { return begun.Unix() + int64(index) }
			want := fmt.Sprintf(" failed@%d=%d failed@%d/3=%d", at(tc.other), tc.other, at(tc.coded), tc.coded)
			if got := s.written.ControlledResources["pods-a"]; !strings.HasSuffix(got, want) {
				t.Errorf("on record is %q, want it to end in %q", got, want)
			}
		})
	}
}
