// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package coscheduling

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

// TestGangsThatDifferLearnNothingFromEachOther.
func TestGangsThatDifferLearnNothingFromEachOther(t *testing.T) {
	view := func(change func(*gangView)) string {
		v := viewOf(makeGroup("gang", 2), makeMembers("gang", 2))
		change(&v)
		return v.shape()
	}
	same := view(func(*gangView) {})
	for name, change := range map[string]func(*gangView){
		"the minimum of a role": func(v *gangView) { v.group.Spec.MinRoleMember = map[string]int32{"": 1} },
		"the right to preempt":  func(v *gangView) { v.mayPreempt = !v.mayPreempt },
		"the minimum":           func(v *gangView) { v.group.Spec.MinMember = 1 },
		"the number of members": func(v *gangView) { v.classKeys = v.classKeys[1:] },
		"the priority":          func(v *gangView) { v.rank.Priority++ },
		"the kind of a member":  func(v *gangView) { v.classKeys = []string{v.classKeys[0], "another"} },
	} {
		if view(change) == same {
			t.Errorf("gangs that differ in %s are taken to be alike", name)
		}
	}
}

// TestALikeGangIsNotPlannedInVain: two gangs like one that found no place are told the same,
// and only the first of them is planned.
func TestALikeGangIsNotPlannedInVain(t *testing.T) {
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
}

// TestALikeGangThatHasGrown: a gang from which another has learned grows, and has no place
// again. Then there is room for what it was.
func TestALikeGangThatHasGrown(t *testing.T) {
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
}
