// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/lockstep-k8s/lockstep/controller/engine/plan"
	"github.com/lockstep-k8s/lockstep/controller/pacing"
)

// TestOnlyWhatSomebodyUndoesIsRepeated: a change of an object that was made anew waits for
// nothing, though it is the change that the one before it got. So it is with the mark of
// a Pod that is to be restarted, restart after restart.
func TestOnlyWhatSomebodyUndoesIsRepeated(t *testing.T) {
	type write struct {
		verb plan.Verb
		uid  types.UID
	}
	tests := map[string]struct {
		writes   []write
		repeated bool
	}{
		"an object that was changed back":     {[]write{{plan.Update, "a"}, {plan.Update, "a"}}, true},
		"one that was changed after creation": {[]write{{plan.Create, "a"}, {plan.Update, "a"}}, true},
		"one that was deleted":                {[]write{{plan.Create, "a"}, {plan.Create, "b"}}, true},
		"another one of the name":             {[]write{{plan.Update, "a"}, {plan.Update, "b"}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p := &pass[*metav1.PartialObjectMetadata, int]{
				owners: &Owners[*metav1.PartialObjectMetadata, int]{clock: clock.RealClock{}},
				memory: &memory[*metav1.PartialObjectMetadata, int]{contents: map[ref]content{}},
				pace:   &pacing.Pace[cause]{},
			}
			for _, w := range tc.writes {
				p.noteRepeat(result{
					action:     plan.Action{Verb: w.verb, Kind: "Pod", Name: "p", Content: "restart"},
					remembered: &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: w.uid}},
				})
			}
			if repeated := !p.pace.Repeats.None(); repeated != tc.repeated {
				t.Errorf("taken for a repeat: %v, want %v", repeated, tc.repeated)
			}
		})
	}
}
