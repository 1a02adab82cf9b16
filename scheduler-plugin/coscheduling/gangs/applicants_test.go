// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/news"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/provision"
)

// TestWhichGroupsWaitToBeLetIn, and what they ask for beside what their Pods take.
func TestWhichGroupsWaitToBeLetIn(t *testing.T) {
	key := dialect.Key{Dialect: dialect.Volcano, Namespace: testNamespace, Name: "gang"}
	inGang := func(w *schedulertesting.PodWrapper) { w.Annotation("scheduling.k8s.io/group-name", "gang") }
	cores := func(n string) podOption {
		return func(w *schedulertesting.PodWrapper) { w.Req(map[corev1.ResourceName]string{"cpu": n}) }
	}
	for name, tc := range map[string]struct {
		change func(*dialect.Group)
		pods   []*corev1.Pod
		record news.Record
		counts bool
		theirs bool
		want   provision.Amounts // nil for none of them
	}{
		"one without a phase":                   {want: provision.Amounts{"cpu": 8000}},
		"one that its maker has wait":           {change: func(g *dialect.Group) { g.Status.Phase = dialect.PhasePending }, want: provision.Amounts{"cpu": 8000}},
		"not one that was let in":               {change: func(g *dialect.Group) { g.Status.Phase = dialect.PhaseInqueue }},
		"not one that runs":                     {change: func(g *dialect.Group) { g.Status.Phase = dialect.PhaseRunning }},
		"not one whose status was just written": {record: news.Record{Version: "2", Status: &dialect.Status{Phase: dialect.PhaseInqueue}}},
		"one that was let in lately, and counts": {change: func(g *dialect.Group) { g.Status.Phase = dialect.PhaseInqueue }, counts: true,
			want: provision.Amounts{"cpu": 8000}},
		"one of which Pods wait": {pods: []*corev1.Pod{makePod("a", inGang, cores("2"))}, want: provision.Amounts{"cpu": 8000}},
		"without what its Pods take that have a place": {pods: []*corev1.Pod{makePod("a", inGang, cores("2"), onNode("n")), makePod("b", inGang, cores("2"))},
			want: provision.Amounts{"cpu": 6000}},
		"not one of another scheduler":          {pods: []*corev1.Pod{makePod("a", inGang, func(w *schedulertesting.PodWrapper) { w.SchedulerName("another") })}},
		"not one without Pods that is nobody's": {theirs: true},
		"not one that can't be placed":          {change: func(g *dialect.Group) { g.Spec.Halt = dialect.Halt{Reason: dialect.ReasonNotSupported} }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlindBench()
			links := &dialect.Links{}
			links.TurnOn(dialect.Volcano)
			b.config.Links, b.config.Claims = links, func(dialect.Dialect) bool { return !tc.theirs }
			group := &dialect.Group{Key: key, UID: "u", ResourceVersion: "1", Asked: 2, Status: &dialect.Status{},
				Spec: dialect.Spec{Provision: dialect.Provision{Resources: provision.Amounts{"cpu": 8000}}}}
			group.Spec.Minimum.Members = 2
			if tc.change != nil {
				tc.change(group)
			}
			b.Gangs.SetGroup(group)
			b.add(tc.pods...)
			b.Remember(group, tc.record)
			counts := func(dialect.Key, types.UID) bool { return tc.counts }
			if _, ok := b.Applicants(dialect.Volcano, counts); ok {
				t.Error("they are known before all is known that was there")
			}
			b.SetSynced()
			got, ok := b.Applicants(dialect.Volcano, counts)
			if !ok {
				t.Fatal("they are not known")
			}
			if tc.want == nil {
				if len(got) > 0 {
					t.Errorf("%v are", got)
				}
				return
			}
			if len(got) != 1 || got[0].Key != key || got[0].UID != "u" || got[0].Waits == tc.counts {
				t.Fatalf("they are %+v", got)
			}
			if want := tc.counts; got[0].Expects != want {
				t.Errorf("its Pods are still to come: %t, want %t", got[0].Expects, want)
			}
			if diff := cmp.Diff(tc.want, got[0].Rest); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}
