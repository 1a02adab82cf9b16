// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
)

func TestActionsBeginSlowlyAndEndWhenItIsEnough(t *testing.T) {
	tests := map[string]struct {
		actions, begin int
		enoughAfter    int
		wantRan        int
	}{
		"all are run":                         {actions: 100, wantRan: 100},
		"all are run at a known pace":         {actions: 100, begin: 4, wantRan: 100},
		"it was enough before it began":       {actions: 100, enoughAfter: -1, wantRan: 1},
		"it was enough after the third":       {actions: 100, enoughAfter: 3, wantRan: 5}, // Two are under way.
		"it was enough at once, at some pace": {actions: 100, begin: 8, enoughAfter: -1, wantRan: 1},
		"nothing to do":                       {wantRan: 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			ran := 0
			left := batch{
				begin: tc.begin, most: func() int { return 8 },
				enough: func() bool { return tc.enoughAfter < 0 || tc.enoughAfter > 0 && ran >= tc.enoughAfter },
				do:     func(plan.Action) result { return result{} },
				skip:   func(plan.Action) bool { return false },
				begun:  func() {},
				learn:  func(result) { ran++ },
			}.run(make([]plan.Action, tc.actions))
			if ran != tc.wantRan || len(left) != tc.actions-ran {
				t.Errorf("%d actions ran and %d are left, want %d and the rest", ran, len(left), tc.wantRan)
			}
		})
	}
}

func TestAFailureSlowsDownAndSparesOthersInVain(t *testing.T) {
	const tasks, most = 100, 16
	var underWay, mostUnderWay atomic.Int32
	failed, ran := false, 0
	actions := make([]plan.Action, tasks)
	for i := range actions {
		actions[i].Group = []string{"a", "b"}[i%2]
	}
	batch{
		begin: 1, most: func() int { return most },
		enough: func() bool { return false },
		do: func(action plan.Action) result {
			defer underWay.Add(-1)
			if now := underWay.Add(1); now > mostUnderWay.Load() {
				mostUnderWay.Store(now)
			}
			if action.Group == "b" {
				return result{action: action, err: errors.New("refused")}
			}
			return result{action: action}
		},
		skip:  func(action plan.Action) bool { return failed && action.Group == "b" },
		begun: func() {},
		learn: func(r result) {
			failed = failed || r.err != nil
			ran++
		},
	}.run(actions)
	if ran < tasks/2+1 || ran > tasks/2+most {
		t.Errorf("%d actions ran, want all of a, and of b those at most that were under way with the first: %d", ran, tasks/2+most)
	}
	if mostUnderWay.Load() > most {
		t.Errorf("%d actions were under way together, want %d at most", mostUnderWay.Load(), most)
	}
}
