// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package room

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

func coresPods(infos []*framework.PodInfo) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, info := range infos {
		pods = append(pods, info.Pod)
	}
	return pods
}

// TestWhoIsLeaving: until half a minute after it should have ended.
func TestWhoIsLeaving(t *testing.T) {
	pods := coresOn(t, "a", "pod", 4)
	evicted, refused, deleted, stays := pods[0].Pod, pods[1].Pod, pods[2].Pod, pods[3].Pod
	deleted.DeletionTimestamp = &metav1.Time{Time: noon.Add(10 * time.Second)}
	var evictions Evictions
	if evictions.IsLeaving(evicted, noon) {
		t.Error("a Pod is leaving that nobody has told to")
	}
	evictions.Add([]*corev1.Pod{evicted, refused}, noon, noon.Add(time.Minute))
	evictions.Remove(refused)
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		after time.Duration
		want  bool
	}{
		"one that is being evicted and does not show it":  {evicted, 59 * time.Second, true},
		"not when it should have ended":                   {evicted, time.Minute, false},
		"not one that could not be evicted":               {refused, 0, false},
		"one that was told to end":                        {deleted, 39 * time.Second, true},
		"not one that has outlived that by half a minute": {deleted, 40 * time.Second, false},
		"not one that nobody has told to":                 {stays, 0, false},
	} {
		if got := evictions.IsLeaving(tc.pod, noon.Add(tc.after)); got != tc.want {
			t.Errorf("%s: it is leaving: %v, want %v", name, got, tc.want)
		}
	}
	if got := evictions.GoneBy([]fwk.PodInfo{pods[0], pods[2], pods[3]}, noon).Sub(noon); got != time.Minute {
		t.Errorf("all should have ended %s after noon, want 1m", got)
	}
	if got := evictions.GoneBy(nil, noon); got != noon {
		t.Errorf("nobody should have ended at %s, want now", got)
	}
	evictions.Add([]*corev1.Pod{stays}, noon.Add(2*time.Minute), noon.Add(3*time.Minute))
	if n := len(evictions.until); n != 1 {
		t.Errorf("%d Pods are remembered, want the one that may yet be leaving", n)
	}
}

// TestHowLongRoomIsReserved: for the victims' grace periods and half a minute.
func TestHowLongRoomIsReserved(t *testing.T) {
	owner := gang("gang", 0, 0)
	victims := func(graces ...int64) []*corev1.Pod {
		pods := coresPods(coresOn(t, "a", "victim", len(graces)))
		for i := range graces {
			pods[i].Spec.TerminationGracePeriodSeconds = &graces[i]
		}
		return pods
	}
	twoMinutes := NewReservation(owner, nil, victims(90), nil, noon)
	for name, tc := range map[string]struct {
		victims []*corev1.Pod
		before  *Reservation
		want    time.Duration
	}{
		"for the longest of their grace periods":        {victims: victims(10, 60, 5), want: 90 * time.Second},
		"for half a minute, if they need not be waited": {victims: victims(0), want: 30 * time.Second},
		"for half a minute, if they say what can't be":  {victims: victims(-5), want: 30 * time.Second},
		"for the default grace period":                  {victims: coresPods(coresOn(t, "a", "victim", 1)), want: 60 * time.Second},
		"no shorter than for the victims before":        {victims: victims(10), before: twoMinutes, want: 2 * time.Minute},
		"longer, if the new ones need longer":           {victims: victims(100), before: twoMinutes, want: 130 * time.Second},
		"as long as before, if there are no new ones":   {before: twoMinutes, want: 2 * time.Minute},
	} {
		if got := NewReservation(owner, nil, tc.victims, tc.before, noon).End().Sub(noon); got != tc.want {
			t.Errorf("%s: it is reserved for %s, want %s", name, got, tc.want)
		}
	}
	if end := NewReservation(owner, nil, victims(math.MaxInt64), nil, noon).End(); end.Before(noon.AddDate(1, 0, 0)) {
		t.Errorf("a victim may take longer than can be counted, and its room is reserved until %s", end)
	}
}
