// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import "testing"

// TestWhoIsToldThatItsPriorityClassDoesNotCount: once, and when its Pods are there.
func TestWhoIsToldThatItsPriorityClassDoesNotCount(t *testing.T) {
	ranks := func(highest, class int32) func(*Gang) {
		return func(g *Gang) {
			g.Group.Spec.PriorityClassName = "high"
			g.Highest, g.Class = &highest, &class
		}
	}
	const want = "the group ranks with the priority 1, the highest of its Pods, and not with 9, the value of its PriorityClass high: " +
		"a group ranks no higher than its Pods do"
	tests := map[string]struct {
		gang Gang
		want string
	}{
		"a group whose class is worth more":          {gang: gangOf(complete, ranks(1, 9)), want: want},
		"one that was placed at once":                {gang: gangOf(bound, ranks(1, 9), func(g *Gang) { g.Assumed = true }), want: want},
		"none that a scheduler before has placed":    {gang: gangOf(bound, ranks(1, 9))},
		"none whose Pods are still to come":          {gang: gangOf(ranks(1, 9))},
		"none whose class is worth as much":          {gang: gangOf(complete, ranks(9, 9))},
		"none whose class is worth less":             {gang: gangOf(complete, ranks(9, 1))},
		"none without a class, or with none that is": {gang: gangOf(complete, ranks(1, 9), func(g *Gang) { g.Class = nil })},
		"none without Pods":                          {gang: gangOf(complete, ranks(1, 9), func(g *Gang) { g.Highest = nil })},
		"none that does not exist":                   {gang: gangOf(complete, ranks(1, 9), groupless)},
		"none that was told":                         {gang: gangOf(complete, ranks(1, 9), func(g *Gang) { g.Record.Warned([]Warning{{Reason: ReasonCapped}}) })},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, w := range tc.gang.Warnings() {
				got += w.Message
			}
			if got != tc.want {
				t.Errorf("it is told %q, want %q", got, tc.want)
			}
		})
	}
}
