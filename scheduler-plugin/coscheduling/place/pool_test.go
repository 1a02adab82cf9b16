// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package place

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulertesting "k8s.io/kubernetes/pkg/scheduler/testing"

	"github.com/lockstep-k8s/lockstep/podgroup"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/gangs"
	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/queue"
)

// TestWhatAGangMayTakeThePlaceOf: the gang has priority 5, and waits since noon. A gang of
// two that it meets has a priority of its own, whatever those of its Pods are.
func TestWhatAGangMayTakeThePlaceOf(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	gang := func(priority int32, placed int32, change func(*gangs.Standing)) *gangs.Standing {
		s := &gangs.Standing{Group: &dialect.Group{}, Rank: queue.Rank{Priority: priority}}
		s.Group.Spec.Minimum.Members = 2
		s.Placed = podgroup.Tally{}
		s.Placed.Add("", placed)
		if !s.Group.HeldBy(s.Placed) {
			s.WaitsSince = noon.Add(-time.Hour)
		}
		if change != nil {
			change(s)
		}
		return s
	}
	ordinary := func(priority int32, policy corev1.RestartPolicy) *corev1.Pod {
		return pod("ordinary", func(w *schedulertesting.PodWrapper) { w.Priority(priority); w.Spec.RestartPolicy = policy })
	}
	never, always := corev1.RestartPolicyNever, corev1.RestartPolicyAlways
	tests := map[string]struct {
		pod                       *corev1.Pod
		of                        *gangs.Standing
		outranked, broken, ending bool
	}{
		"a Pod of lower priority":                                 {pod: ordinary(4, never), outranked: true, ending: true},
		"a service of lower priority, which does not end":         {pod: ordinary(4, always), outranked: true},
		"a Pod of its priority, if it ends":                       {pod: ordinary(5, never), ending: true},
		"a gang of lower priority":                                {pod: ordinary(9, always), of: gang(4, 2, nil), outranked: true, ending: true},
		"a gang of higher priority with Pods of lower":            {pod: ordinary(1, never), of: gang(6, 2, nil), ending: true},
		"one behind that has lost a member, and waits as long":    {pod: ordinary(5, never), of: gang(4, 1, nil), outranked: true, broken: true, ending: true},
		"one ahead that has lost a member":                        {pod: ordinary(5, never), of: gang(6, 1, nil), ending: true},
		"one behind that has lost a member just now":              {pod: ordinary(5, never), of: gang(4, 1, func(s *gangs.Standing) { s.WaitsSince = noon }), outranked: true, ending: true},
		"one behind that has lost a member, and found room since": {pod: ordinary(5, never), of: gang(4, 1, func(s *gangs.Standing) { s.WaitsSince = time.Time{} }), outranked: true, ending: true},
	}
	rank := queue.Rank{Priority: 5}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			for kind, one := range map[string]struct {
				is   prey
				want bool
			}{
				"outranked":         {outranked(rank), tc.outranked},
				"broken and behind": {brokenBehind(rank, noon), tc.broken},
				"ending":            {endsByItself, tc.ending},
			} {
				if got := one.is(tc.pod, tc.of); got != one.want {
					t.Errorf("it is %s: %t, want %t", kind, got, one.want)
				}
			}
		})
	}
}
