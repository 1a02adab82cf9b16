// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestALikeGangIsNotPlannedInVain: two gangs like one that found no place are told the same,
// and only the first of them is planned.
func TestALikeGangIsNotPlannedInVain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode),
			bornAt(1, makeGroup("first", 1)), makeMembers("first", 1, wholeNode))...)
		w.start()
		told := w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		for i, name := range []string{"second", "third"} {
			w.create(bornAt(2+i, makeGroup(name, 1)))
			w.create(makeMembers(name, 1, wholeNode)[0])
			if got := w.condition(name, metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources); got.Message != told.Message {
				t.Errorf("%s is told %q, and the one before it %q", name, got.Message, told.Message)
			}
		}
		for _, name := range []string{"first", "second", "third"} {
			w.create(makeNodes("for-"+name, 1, 2)[0])
			w.eventually(name+" is placed", func() bool { return w.placed(name) == 1 })
		}
	})
}

// TestALikeGangThatHasGrown: a gang from which another has learned grows, and has no place
// again. Then there is room for what it was.
func TestALikeGangThatHasGrown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		w := newWorld(t, all(makeNodes("node", 1, 2), makePod("running", onNode("node-0"), wholeNode),
			makeGroup("first", 1), makeMembers("first", 1, wholeNode), makeGroup("second", 1), makeMembers("second", 1, wholeNode))...)
		w.start()
		w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.condition("second", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)

		for _, member := range makeMembers("first", 2, wholeNode)[1:] {
			w.create(member)
		}
		grown := makeGroup("first", 2)
		grown.Generation = 2
		if _, err := w.lock.SchedulingV1alpha1().PodGroups(testNamespace).Update(t.Context(), grown, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.eventually("the first gang has failed as what it is now", func() bool {
			return strings.Contains(w.told("first").Message, "of the 2 members")
		})
		w.create(makeNodes("new", 1, 2)[0])
		w.eventually("the second gang is placed", func() bool { return w.placed("second") == 1 })
	})
}

// TestGangsThatDifferInLabelsAreNotAlikeWhereLabelsCount: each pair has the same spec, and the
// second gang fits where the first does not.
func TestGangsThatDifferInLabelsAreNotAlikeWhereLabelsCount(t *testing.T) {
	labelled := func(w *schedulertesting.PodWrapper) { w.Label("app", "a") }
	repelsA := func(w *schedulertesting.PodWrapper) {
		w.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, TopologyKey: corev1.LabelHostname}}}}
	}
	tests := map[string]struct {
		before  []apiruntime.Object
		members []podOption
	}{
		"a Pod repels the first from where it would preempt": {
			before:  all(makePod("guard", onNode("node-0"), ofPriority(100), repelsA), makePod("low", onNode("node-0"), plusCores("2"), ofPriority(0))),
			members: []podOption{plusCores("1"), ofPriority(10)},
		},
		"the members of the first repel each other": {members: []podOption{repelsA}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				members := int32(2)
				if tc.before != nil {
					members = 1
				}
				w := newWorld(t, all(makeNodes("node", 1, 4), tc.before, bornAt(1, makeGroup("first", members)),
					makeMembers("first", int(members), append(tc.members, labelled)...))...)
				w.start()
				w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
				w.create(bornAt(2, makeGroup("second", members)))
				for _, member := range makeMembers("second", int(members), tc.members...) {
					w.create(member)
				}
				w.eventually("the second is placed", func() bool { return w.placed("second") == int(members) })
			})
		})
	}
}

// TestAGangOfWhichMembersAreKeptBackSpeaksForNoOther: of the first only the large member may be
// scheduled, of the second both.
func TestAGangOfWhichMembersAreKeptBackSpeaksForNoOther(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		members := func(group string) []apiruntime.Object {
			return all(makePod(group+"-0", inGroup(group)), makePod(group+"-1", inGroup(group), plusCores("9")))
		}
		w := newWorld(t, all(makeNodes("node", 1, 2), bornAt(1, makeGroup("first", 1)), members("first"), members("second"))...)
		w.others = []fwk.Plugin{suspicious{map[string]bool{"first-1": true, "second-0": true, "second-1": true}}}
		w.start()
		w.condition("first", metav1.ConditionTrue, schedulingv1alpha1.ReasonNotEnoughResources)
		w.create(bornAt(2, makeGroup("second", 1)))
		w.eventually("the small member of the second is placed", func() bool { return w.placed("second") == 1 })
	})
}
