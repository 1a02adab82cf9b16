// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
)

// gangOf is a gang of which all members are needed, and wait.
func gangOf(members ...*corev1.Pod) *Gang {
	group := &dialect.Group{Spec: dialect.Spec{Minimum: podgroup.Minimum{Members: int32(len(members))}}}
	gang := &Gang{View: gangs.View{Group: group, Waiting: members}}
	for _, member := range members {
		gang.ClassKeys = append(gang.ClassKeys, ClassKey(member, podgroup.RoleOf(member)))
	}
	return gang
}

// TestGangsThatDifferLearnNothingFromEachOther.
func TestGangsThatDifferLearnNothingFromEachOther(t *testing.T) {
	view := func(change func(*Gang)) string {
		v := gangOf(pod("gang-0"), pod("gang-1"))
		change(v)
		return v.Shape()
	}
	same := view(func(*Gang) {})
	for name, change := range map[string]func(*Gang){
		"the minimum of a role": func(v *Gang) { v.Group.Spec.Minimum.Roles = map[string]int32{"": 1} },
		"the right to preempt":  func(v *Gang) { v.MayPreempt = !v.MayPreempt },
		"the minimum":           func(v *Gang) { v.Group.Spec.Minimum.Members = 1 },
		"the number of members": func(v *Gang) { v.ClassKeys = v.ClassKeys[1:] },
		"the priority":          func(v *Gang) { v.Rank.Priority++ },
		"the kind of a member":  func(v *Gang) { v.ClassKeys = []string{v.ClassKeys[0], "another"} },
	} {
		if view(change) == same {
			t.Errorf("gangs that differ in %s are taken to be alike", name)
		}
	}
}
