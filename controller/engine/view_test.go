// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// TestAViewShowsTheNewestThatIsKnown of each object: what was written is shown until the
// cache is as new, and what a live look has found, until the cache has it.
func TestAViewShowsTheNewestThatIsKnown(t *testing.T) {
	pod := func(name, version, made string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name), ResourceVersion: version,
			Annotations: map[string]string{"owner": "o", "made": made},
		}}
	}
	ended := pod("ended", "3", "cache")
	ended.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	tests := map[string]struct {
		cached []*corev1.Pod
		seen   string // The version that the cache has seen.
		ahead  []*corev1.Pod
		strays []*corev1.Pod
		want   map[string]string
	}{
		"what the cache has":                       {cached: []*corev1.Pod{pod("a", "3", "cache"), ended}, seen: "4", want: map[string]string{"a": "cache", "ended": "cache"}},
		"a creation that the cache has not seen":   {seen: "4", ahead: []*corev1.Pod{pod("a", "5", "write")}, want: map[string]string{"a": "write"}},
		"a change that the cache has not seen":     {cached: []*corev1.Pod{pod("a", "3", "cache")}, seen: "4", ahead: []*corev1.Pod{pod("a", "5", "write")}, want: map[string]string{"a": "write"}},
		"a change that others have changed":        {cached: []*corev1.Pod{pod("a", "6", "cache")}, seen: "6", ahead: []*corev1.Pod{pod("a", "5", "write")}, want: map[string]string{"a": "cache"}},
		"a creation that others have deleted":      {seen: "6", ahead: []*corev1.Pod{pod("a", "5", "write")}, want: map[string]string{}},
		"one that was found, and has lost a label": {seen: "6", strays: []*corev1.Pod{pod("a", "5", "look")}, want: map[string]string{"a": "look"}},
		"one that was found, and is there again":   {cached: []*corev1.Pod{pod("a", "5", "cache")}, seen: "6", strays: []*corev1.Pod{pod("a", "5", "look")}, want: map[string]string{"a": "cache"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			informer := cache.NewSharedIndexInformerWithOptions(&cache.ListWatch{}, &corev1.Pod{},
				cache.SharedIndexInformerOptions{Indexers: OwnerIndex("owner")})
			for _, pod := range tc.cached {
				if err := informer.GetIndexer().Add(pod); err != nil {
					t.Fatal(err)
				}
			}
			informer.GetIndexer().Bookmark(tc.seen)
			memory := &memory[*corev1.ConfigMap, int]{objects: newObjects()}
			for _, pod := range tc.ahead {
				memory.ahead[ref{"Pod", pod.Name}] = pod
			}
			for _, pod := range tc.strays {
				memory.strays[pod.UID] = stray{kind: "Pod", object: pod}
			}
			p := &pass[*corev1.ConfigMap, int]{
				owners: &Owners[*corev1.ConfigMap, int]{
					clock: clocktesting.NewFakePassiveClock(time.Unix(100, 0)),
					kinds: map[string]*Kind{"Pod": {Name: "Pod", Informer: informer}},
				},
				key: cache.NewObjectName("ns", "o"), entry: &entry[*corev1.ConfigMap]{owner: &corev1.ConfigMap{}},
				memory: memory, pace: &pacing.Pace[cause]{}, departures: &departures{},
			}
			view, err := p.gather()
			if err != nil {
				t.Fatal(err)
			}
			owned, err := Owned[*corev1.Pod](view, "Pod", "o")
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for name, pod := range owned {
				got[name] = pod.Annotations["made"]
				named, err := Named[*corev1.Pod](view, "Pod", name)
				if err != nil || named != pod {
					t.Errorf("by its name, %s is %v (%v), want the same as among all", name, named, err)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("unexpected Pods, by who has told of them (-want +got):\n%s", diff)
			}
			if _, seen := view.Terminating["uid-ended"]; seen != (tc.want["ended"] != "") {
				t.Errorf("that a Pod is being deleted is noted: %t", seen)
			}
		})
	}
}
