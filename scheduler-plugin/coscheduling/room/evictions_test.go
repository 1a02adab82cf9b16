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
	evictions.Add([]*corev1.Pod{evicted, refused}, noon)
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
	evictions.Add([]*corev1.Pod{stays}, noon.Add(2*time.Minute))
	if n := len(evictions.until); n != 1 {
		t.Errorf("%d Pods are remembered, want the one that may yet be leaving", n)
	}
}

// TestUntilWhenPodsAreAwaited: for their grace periods and half a minute, and for no more than
// ten minutes of a grace period, whoever told them to end, and whose clock says so.
func TestUntilWhenPodsAreAwaited(t *testing.T) {
	const year = 365 * 24 * 3600
	for name, tc := range map[string]struct {
		graces []int64
		told   time.Duration // before noon, by this scheduler; 0 if it did not
		stated time.Duration // DeletionTimestamp after noon; 0 if there is none
		want   time.Duration
	}{
		"the longest of their grace periods":         {graces: []int64{10, 60, 5}, want: 90 * time.Second},
		"half a minute, if they need not be waited":  {graces: []int64{0}, want: 30 * time.Second},
		"half a minute, if they say what can't be":   {graces: []int64{-5}, want: 30 * time.Second},
		"ten minutes of a year":                      {graces: []int64{year}, want: 630 * time.Second},
		"ten minutes of what can't be counted":       {graces: []int64{math.MaxInt64}, want: 630 * time.Second},
		"what is left, if they were told before":     {graces: []int64{60}, told: 20 * time.Second, want: 70 * time.Second},
		"what the API server says, if it is later":   {graces: []int64{60}, told: 20 * time.Second, stated: 2 * time.Minute, want: 150 * time.Second},
		"what this one knows, if that is later":      {graces: []int64{60}, told: 20 * time.Second, stated: -2 * time.Minute, want: 70 * time.Second},
		"ten minutes of a year that has just begun":  {graces: []int64{year}, stated: year * time.Second, want: 630 * time.Second},
		"nothing of a year that began ten years ago": {graces: []int64{year}, stated: -9 * year * time.Second},
	} {
		var evictions Evictions
		infos := coresOn(t, "a", "pod", len(tc.graces))
		var pods []fwk.PodInfo
		for i, info := range infos {
			info.Pod.Spec.TerminationGracePeriodSeconds = &tc.graces[i]
			if tc.stated != 0 {
				info.Pod.DeletionTimestamp = &metav1.Time{Time: noon.Add(tc.stated)}
			}
			pods = append(pods, info)
		}
		if tc.told > 0 {
			evictions.Add(coresPods(infos), noon.Add(-tc.told))
		}
		if got := evictions.GoneBy(pods, noon).Sub(noon); got != tc.want {
			t.Errorf("%s: they are awaited for %s, want %s", name, got, tc.want)
		}
	}
}

// TestWhoCanNotBeEvicted: until a time.
func TestWhoCanNotBeEvicted(t *testing.T) {
	pods := coresOn(t, "a", "pod", 2)
	refused, other := pods[0].Pod, pods[1].Pod
	var evictions Evictions
	evictions.Refused(refused, noon.Add(time.Minute))
	is := func(pod *corev1.Pod, now time.Time) bool { return !evictions.RefusedUntil(pod, now).IsZero() }
	if !is(refused, noon) || is(refused, noon.Add(time.Minute)) || is(other, noon) {
		t.Error("a Pod that is refused is not so until a time, or another one is")
	}
	evictions.Add([]*corev1.Pod{other}, noon.Add(time.Hour))
	if n := len(evictions.refused); n != 0 {
		t.Errorf("%d Pods are remembered, want none whose time is over", n)
	}
}
