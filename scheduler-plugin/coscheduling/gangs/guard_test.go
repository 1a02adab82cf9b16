// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestWhomAnOrdinaryPodMayTake: it has to outrank the gang, whatever the member's priority is.
func TestWhomAnOrdinaryPodMayTake(t *testing.T) {
	low := makePod("low", inGroup("gang"), of("this"), onNode("node-0"), ofPriority(1))
	high := makePod("high", inGroup("gang"), of("this"), onNode("node-0"), ofPriority(5))
	stranger := makePod("stranger", inGroup("gang"), onNode("node-0"), ofPriority(1))
	known := newBench()
	blind := newBlindBench()
	unlisted, listed := benchWithOthers(false), benchWithOthers(true)
	ofVolcano := makePod("v", onNode("node-0"), func(w *schedulertesting.PodWrapper) { w.Annotation("scheduling.k8s.io/group-name", "gang") })
	unlisted.add(ofVolcano)
	listed.add(ofVolcano)
	unserved := newBlindBench()
	unserved.SetUnread(dialect.Own, "", dialect.Own.NotServed())
	ownUnlisted := newBench()
	ownUnlisted.SetUnlisted(dialect.Own, true)
	refused, refusedElsewhere := newBench(), newBench()
	refused.SetUnread(dialect.Own, testNamespace, "they may not be listed")
	refusedElsewhere.SetUnread(dialect.Own, "elsewhere", "they may not be listed")
	othersRefused := benchWithOthers(true)
	othersRefused.SetUnread(dialect.Volcano, testNamespace, "they may not be listed")
	othersRefused.add(ofVolcano)
	againAllowed := benchWithOthers(true)
	for _, why := range []string{"they may not be listed", ""} {
		againAllowed.SetUnread(dialect.Volcano, testNamespace, why)
	}
	againAllowed.add(ofVolcano)
	for _, b := range []*bench{known, blind, refused} {
		b.SetGroup(groupOf("this", "gang", 2))
		b.add(low, high, stranger)
	}
	tests := map[string]struct {
		in     *bench
		victim *corev1.Pod
		by     int32
		want   bool
	}{
		"no member of a gang of its priority":                      {in: known, victim: low, by: 5},
		"a member of a gang that it outranks":                      {in: known, victim: high, by: 6, want: true},
		"a stranger, whatever the gang's priority":                 {in: known, victim: stranger, by: 2, want: true},
		"a Pod that names no group":                                {in: known, victim: makePod("ordinary"), by: 2, want: true},
		"a Pod whose group does not exist":                         {in: known, victim: makePod("lost", inGroup("nothing")), by: 2, want: true},
		"nobody who names a group while not all are known":         {in: blind, victim: stranger, by: 100},
		"a Pod that names no group while not all are known":        {in: blind, victim: makePod("ordinary"), by: 2, want: true},
		"nobody who names a group while these can't be listed":     {in: ownUnlisted, victim: low, by: 100},
		"a Pod that names no group while these can't be listed":    {in: ownUnlisted, victim: makePod("ordinary"), by: 2, want: true},
		"a member whose group can't be listed":                     {in: unlisted, victim: ofVolcano, by: 100},
		"a Pod whose group of another kind does not exist":         {in: listed, victim: ofVolcano, by: 100, want: true},
		"whoever names a group where the API server has no groups": {in: unserved, victim: low, by: 2, want: true},

		"a member that is known where groups may not be listed, if it is outranked": {in: refused, victim: low, by: 6, want: true},
		"nobody who names another group there":                                      {in: refused, victim: makePod("lost", inGroup("nothing")), by: 100},
		"no stranger there, whose group may have been made anew":                    {in: refused, victim: stranger, by: 100},
		"a Pod whose group does not exist where others may not be listed elsewhere": {in: refusedElsewhere, victim: makePod("lost", inGroup("nothing")), by: 2, want: true},
		"nobody who names a group of another kind there":                            {in: othersRefused, victim: ofVolcano, by: 100},
		"whoever names a group of another kind when all may be listed again":        {in: againAllowed, victim: ofVolcano, by: 100, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			guard := &Guard{Of: tc.in.Gangs}
			if got := guard.MayBeTaken(tc.victim, makePod("by", ofPriority(tc.by))); got != tc.want {
				t.Errorf("it may be taken: %t, want %t", got, tc.want)
			}
		})
	}
}

// benchWithOthers is a bench with another dialect, whose groups are all seen, or can't be listed.
func benchWithOthers(listed bool) *bench {
	b := newBlindBench()
	b.config.Links = &dialect.Links{}
	b.config.Links.TurnOn(dialect.Volcano)
	if !listed {
		b.SetUnread(dialect.Volcano, "", dialect.Volcano.NotServed())
	}
	b.SetSynced()
	return b
}

// TestWhoGoesWithAMember: the rest of a gang that can't go on without it.
func TestWhoGoesWithAMember(t *testing.T) {
	placed := func(name string, options ...podOption) *corev1.Pod {
		return makePod(name, append([]podOption{inGroup("gang"), onNode("node-0")}, options...)...)
	}
	perPod := func(s *schedulingv1alpha1.PodGroupSpec) { s.DisruptionMode = schedulingv1alpha1.DisruptPod }
	tests := map[string]struct {
		group    *schedulingv1alpha1.PodGroup
		pods     []*corev1.Pod
		takes    []*corev1.Pod
		wantCost int // of the first
		wantRest []string
	}{
		"all others of a gang that needs it": {
			group: makeGroup("gang", 3), pods: []*corev1.Pod{placed("a"), placed("c"), placed("b")},
			takes: []*corev1.Pod{placed("a")}, wantCost: 3, wantRest: []string{"b", "c"},
		},
		"nobody of a gang that can spare it": {
			group: makeGroup("gang", 2), pods: []*corev1.Pod{placed("a"), placed("b"), placed("c")},
			takes: []*corev1.Pod{placed("a")}, wantCost: 1,
		},
		"all others of a gang that can spare one of two": {
			group: makeGroup("gang", 2), pods: []*corev1.Pod{placed("a"), placed("b"), placed("c")},
			takes: []*corev1.Pod{placed("a"), placed("b")}, wantCost: 1, wantRest: []string{"c"},
		},
		"nobody of a gang whose members go one by one": {
			group: makeGroup("gang", 2, perPod), pods: []*corev1.Pod{placed("a"), placed("b")},
			takes: []*corev1.Pod{placed("a")}, wantCost: 1,
		},
		"nobody of a gang that lacks its minimum already": {
			group: makeGroup("gang", 3), pods: []*corev1.Pod{placed("a"), placed("b")},
			takes: []*corev1.Pod{placed("a")}, wantCost: 1,
		},
		"nobody who has ended, or waits": {
			group: makeGroup("gang", 3),
			pods:  []*corev1.Pod{placed("a"), placed("b"), placed("ended", inPhase(corev1.PodSucceeded)), makePod("waits", inGroup("gang"))},
			takes: []*corev1.Pod{placed("a")}, wantCost: 3, wantRest: []string{"b"},
		},
		"nobody with a Pod of no gang": {
			group: makeGroup("gang", 1), pods: []*corev1.Pod{placed("a")},
			takes: []*corev1.Pod{makePod("ordinary", onNode("node-0"))}, wantCost: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench()
			b.SetGroup(tc.group)
			b.add(tc.pods...)
			guard := &Guard{Of: b.Gangs}
			if got := guard.Cost(tc.takes[0]); got != tc.wantCost {
				t.Errorf("%d Pods go with the first and that, want %d", got, tc.wantCost)
			}
			var rest []string
			for _, pod := range guard.Rest(tc.takes) {
				rest = append(rest, pod.Name)
			}
			if diff := cmp.Diff(tc.wantRest, rest); diff != "" {
				t.Errorf("who goes as well (-want, +got):\n%s", diff)
			}
		})
	}
}
