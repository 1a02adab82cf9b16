// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package podgroup

import (
	"iter"
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

// TestPairsOfPhases says of each pair of phases what leads from one to the other,
// or that nothing does. The group has minMember 3.
func TestPairsOfPhases(t *testing.T) {
	const new = schedulingv1alpha1.PodGroupPhase("")
	var (
		nobody      = counts(0, 0, 0, 0, 0)
		waiting     = counts(3, 0, 0, 0, 0)
		allRun      = counts(3, 3, 3, 0, 0)
		oneLost     = counts(2, 2, 2, 0, 0)
		restarting  = counts(3, 3, 1, 0, 0)
		allEnded    = counts(3, 0, 0, 2, 1)
		oneReplaced = counts(3, 0, 0, 2, 0)
		oneOfThree  = counts(3, 1, 1, 0, 0)
	)
	tests := map[string]struct {
		from, to schedulingv1alpha1.PodGroupPhase
		by       Counts // nothing leads there if it is never
		never    bool
	}{
		"new to Pending: it is accepted":                                  {from: new, to: pending, by: nobody},
		"new to Running: its members ran before it was there":             {from: new, to: running, by: allRun},
		"new to Completed: its members ended before it was there":         {from: new, to: completed, by: allEnded},
		"new to Unknown: never, it has not run":                           {from: new, to: unknown, never: true},
		"Pending to Pending: members wait":                                {from: pending, to: pending, by: waiting},
		"Pending to Running: minMember members run":                       {from: pending, to: running, by: allRun},
		"Pending to Unknown: never, it has not run":                       {from: pending, to: unknown, never: true},
		"Pending to Completed: all members failed before enough ran":      {from: pending, to: completed, by: counts(3, 0, 0, 0, 3)},
		"Running to Pending: never in one step, Unknown is in between":    {from: running, to: pending, never: true},
		"Running to Running: placed members start again":                  {from: running, to: running, by: restarting},
		"Running to Unknown: a member is lost":                            {from: running, to: unknown, by: oneLost},
		"Running to Completed: all members end":                           {from: running, to: completed, by: allEnded},
		"Unknown to Pending: no member is left":                           {from: unknown, to: pending, by: nobody},
		"Unknown to Running: the lost members are replaced and run":       {from: unknown, to: running, by: allRun},
		"Unknown to Unknown: some members run, others are to come":        {from: unknown, to: unknown, by: oneOfThree},
		"Unknown to Completed: the members that are left end":             {from: unknown, to: completed, by: allEnded},
		"Completed to Pending: a member is replaced":                      {from: completed, to: pending, by: oneReplaced},
		"Completed to Running: never in one step, Pending is in between":  {from: completed, to: running, never: true},
		"Completed to Unknown: never, nothing of it runs":                 {from: completed, to: unknown, never: true},
		"Completed to Completed: the members that have ended are removed": {from: completed, to: completed, by: nobody},
	}
	spec := &schedulingv1alpha1.PodGroupSpec{MinMember: 3}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if !tc.never {
				if got := NextPhase(tc.from, spec, tc.by); got != tc.to {
					t.Errorf("from %q: got %s, want %s", tc.from, got, tc.to)
				}
				return
			}
			// Whatever up to four members do.
			for c := range countsUpTo(4) {
				if NextPhase(tc.from, spec, c) == tc.to {
					t.Errorf("from %q to %s with %+v", tc.from, tc.to, c)
				}
			}
		})
	}
}

// countsUpTo are all counts of a group of up to n members.
func countsUpTo(n int32) iter.Seq[Counts] {
	return func(yield func(Counts) bool) {
		for members := range n + 1 {
			for scheduled := range members + 1 {
				for running := range scheduled + 1 {
					for succeeded := range members - scheduled + 1 {
						for failed := range members - scheduled - succeeded + 1 {
							if !yield(counts(members, scheduled, running, succeeded, failed)) {
								return
							}
						}
					}
				}
			}
		}
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
