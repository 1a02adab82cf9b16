// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/planner"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/podclass"
)

// counting is a selector that matches no Pod and counts the Pods about which it was asked.
type counting struct {
	labels.Selector
	asked *int
}

func (c counting) Matches(labels.Labels) bool { *c.asked++; return false }

// TestMembersOfManyKindsAreComparedAsLongAsThereIsTime, and no longer, though each has a term of affinity.
func TestMembersOfManyKindsAreComparedAsLongAsThereIsTime(t *testing.T) {
	const kinds, looks = 500, 5
	start := time.Now()
	var asked, matched int
	cluster := &Cluster{Deadline: start.Add(looks * time.Second), Now: func() time.Time {
		asked++
		return start.Add(time.Duration(asked) * time.Second)
	}}
	found := &survey{world: &planner.World{}, gang: &planner.Gang{}}
	gang := &Gang{View: gangs.View{Group: &dialect.Group{}}}
	for i := range kinds {
		pod := pod(fmt.Sprint(i))
		wants := podclass.Wants{Pod: pod, Near: []podclass.Term{{Key: "rack", Namespaces: []string{pod.Namespace}, Selector: counting{labels.Nothing(), &matched}}}}
		found.classes = append(found.classes, &class{members: []*corev1.Pod{pod}, wants: wants})
		found.gang.Classes = append(found.gang.Classes, planner.Class{Count: 1})
		gang.Waiting = append(gang.Waiting, pod)
	}
	until := cluster.deadline()
	o := &oneByOne{verification: &verification{gang: gang, cluster: cluster, found: found, until: until}, until: until}
	members := o.membersOf(func(int) int { return 1 })
	_, err := o.place(t.Context(), members, nil, func([]member) bool { return false })
	if !errors.Is(err, errOverdue) || matched > kinds*looks {
		t.Errorf("labels were compared %d times in %d seconds, and the error is %v", matched, looks, err)
	}
}

// TestPlansThatFailedAreTriedAgainForAnotherGroup of the same name, or if its spec has changed.
func TestPlansThatFailedAreTriedAgainForAnotherGroup(t *testing.T) {
	var searches Tried
	plan := triedPlan{node: "node", members: 2}
	group := dialect.Group{Key: dialect.Key{Namespace: "ns", Name: "train"}, UID: "first", Generation: 1}
	searches.gang(&group).plans[plan] = true
	told, changed, another := group, group, group
	told.ResourceVersion, changed.Generation, another.UID = "2", 2, "second"
	for name, tc := range map[string]struct {
		group *dialect.Group
		want  bool
	}{
		"one whose status has changed": {&told, true},
		"one whose spec has changed":   {&changed, false},
		"another one":                  {&another, false},
	} {
		if got := searches.gang(tc.group).plans[plan]; got != tc.want {
			t.Errorf("of %s it is known that the plan fails: %t", name, got)
		}
	}
}
