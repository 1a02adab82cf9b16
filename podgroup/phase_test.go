// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"math/rand/v2"
	"slices"
	"testing"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
)

const (
	pending   = schedulingv1alpha1.PodGroupPending
	running   = schedulingv1alpha1.PodGroupRunning
	unknown   = schedulingv1alpha1.PodGroupUnknown
	completed = schedulingv1alpha1.PodGroupCompleted
)

// counts are those of a group of workers. scheduled includes running.
func counts(members, scheduled, running, succeeded, failed int32) Counts {
	return Counts{
		Members:   worker(members),
		Scheduled: worker(scheduled),
		Running:   worker(running),
		Succeeded: worker(succeeded),
		Failed:    worker(failed),
	}
}

// TestNextPhase asks, for each state that the members of a group of four with
// minMember 3 may be in, for the phase that follows each phase: every pair.
func TestNextPhase(t *testing.T) {
	type phase = schedulingv1alpha1.PodGroupPhase
	tests := map[string]struct {
		counts                                                        Counts
		fromNew, fromPending, fromRunning, fromUnknown, fromCompleted phase
	}{
		"no members": {
			counts:        counts(0, 0, 0, 0, 0),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   unknown,
			fromUnknown:   pending,
			fromCompleted: completed,
		},
		"members wait for nodes": {
			counts:        counts(4, 0, 0, 0, 0),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   unknown,
			fromUnknown:   pending,
			fromCompleted: pending,
		},
		"all placed, none runs yet, or all start again": {
			counts:        counts(4, 4, 0, 0, 0),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   running,
			fromUnknown:   pending,
			fromCompleted: pending,
		},
		"all placed, too few run": {
			counts:        counts(4, 4, 2, 0, 0),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   running,
			fromUnknown:   unknown,
			fromCompleted: pending,
		},
		"minMember run": {
			counts:        counts(4, 4, 3, 0, 0),
			fromNew:       running,
			fromPending:   running,
			fromRunning:   running,
			fromUnknown:   running,
			fromCompleted: pending,
		},
		"minMember run or succeeded": {
			counts:        counts(4, 1, 1, 2, 1),
			fromNew:       running,
			fromPending:   running,
			fromRunning:   running,
			fromUnknown:   running,
			fromCompleted: pending,
		},
		"too few run and a replacement waits for a node": {
			counts:        counts(3, 2, 2, 0, 0),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   unknown,
			fromUnknown:   unknown,
			fromCompleted: pending,
		},
		"two failed: minMember is out of reach of those left": {
			counts:        counts(4, 2, 2, 0, 2),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   unknown,
			fromUnknown:   unknown,
			fromCompleted: pending,
		},
		"some succeeded, the rest is not placed": {
			counts:        counts(4, 0, 0, 2, 0),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   unknown,
			fromUnknown:   unknown,
			fromCompleted: pending,
		},
		"some failed, the rest is not placed": {
			counts:        counts(4, 0, 0, 0, 2),
			fromNew:       pending,
			fromPending:   pending,
			fromRunning:   unknown,
			fromUnknown:   pending,
			fromCompleted: pending,
		},
		"all succeeded": {
			counts:        counts(4, 0, 0, 4, 0),
			fromNew:       completed,
			fromPending:   completed,
			fromRunning:   completed,
			fromUnknown:   completed,
			fromCompleted: completed,
		},
		"all failed": {
			counts:        counts(4, 0, 0, 0, 4),
			fromNew:       completed,
			fromPending:   completed,
			fromRunning:   completed,
			fromUnknown:   completed,
			fromCompleted: completed,
		},
		"all ended, fewer than minMember are left to see": {
			counts:        counts(1, 0, 0, 1, 0),
			fromNew:       completed,
			fromPending:   completed,
			fromRunning:   completed,
			fromUnknown:   completed,
			fromCompleted: completed,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			spec := &schedulingv1alpha1.PodGroupSpec{MinMember: 3}
			for current, want := range map[phase]phase{
				"":        tc.fromNew,
				pending:   tc.fromPending,
				running:   tc.fromRunning,
				unknown:   tc.fromUnknown,
				completed: tc.fromCompleted,
			} {
				if got := NextPhase(current, spec, tc.counts); got != want {
					t.Errorf("NextPhase(%q): got %s, want %s", current, got, want)
				}
			}
		})
	}
}

func TestNextPhaseHoldsRoleMinima(t *testing.T) {
	spec := &schedulingv1alpha1.PodGroupSpec{MinMember: 2, MinRoleMember: map[string]int32{"ps": 1}}
	workers := counts(3, 3, 3, 0, 0)
	if got := NextPhase(pending, spec, workers); got != pending {
		t.Errorf("three workers without a ps: got %s, want Pending", got)
	}
	if got := NextPhase(running, spec, workers); got != unknown {
		t.Errorf("the ps is lost: got %s, want Unknown", got)
	}
	withPS := workers
	withPS.Members.Roles = map[string]int32{"worker": 2, "ps": 1}
	withPS.Scheduled, withPS.Running = withPS.Members, withPS.Members
	if got := NextPhase(unknown, spec, withPS); got != running {
		t.Errorf("the ps is back: got %s, want Running", got)
	}
}

// TestNextPhaseMakesLegalSteps walks at random through counts: only legal
// transitions happen, and with the same counts the phase settles in two steps.
func TestNextPhaseMakesLegalSteps(t *testing.T) {
	legal := map[schedulingv1alpha1.PodGroupPhase][]schedulingv1alpha1.PodGroupPhase{
		"":        {pending, running, completed},
		pending:   {running, completed},
		running:   {unknown, completed},
		unknown:   {running, pending, completed},
		completed: {pending},
	}
	const seed = 1
	random := rand.New(rand.NewPCG(seed, seed))
	current := schedulingv1alpha1.PodGroupPhase("")
	for step := range 100_000 {
		spec := &schedulingv1alpha1.PodGroupSpec{MinMember: 1 + random.Int32N(4)}
		scheduled, succeeded, failed := random.Int32N(4), random.Int32N(3), random.Int32N(3)
		now := counts(scheduled+succeeded+failed+random.Int32N(3), scheduled, random.Int32N(scheduled+1), succeeded, failed)
		for call := range 3 {
			next := NextPhase(current, spec, now)
			if next == current {
				break
			}
			if call == 2 {
				t.Fatalf("seed %d, step %d: not settled after two calls: %s to %s", seed, step, current, next)
			}
			if !slices.Contains(legal[current], next) {
				t.Fatalf("seed %d, step %d: illegal transition from %q to %s with %+v", seed, step, current, next, now)
			}
			current = next
		}
	}
}
