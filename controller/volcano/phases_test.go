// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package volcano

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	batchv1alpha1 "github.com/lockstep-k8s/lockstep/apis/batch/v1alpha1"
	busv1alpha1 "github.com/lockstep-k8s/lockstep/apis/bus/v1alpha1"
)

var allPhases = []batchv1alpha1.JobPhase{pp, rr, rs, ab, abd, tt, td, cc, cd, ff}

func TestWhatAnActionDoesInAPhase(t *testing.T) {
	stops := []batchv1alpha1.JobPhase{pp, rr, rs}
	restarts := []batchv1alpha1.JobPhase{pp, rr}
	tests := map[busv1alpha1.Action]struct{ changes, joins []batchv1alpha1.JobPhase }{
		busv1alpha1.ActionAbortJob:         {changes: stops},
		busv1alpha1.ActionTerminateJob:     {changes: stops},
		busv1alpha1.ActionCompleteJob:      {changes: stops},
		busv1alpha1.ActionRestartJob:       {changes: restarts},
		busv1alpha1.ActionRestartTask:      {changes: restarts, joins: []batchv1alpha1.JobPhase{rs}},
		busv1alpha1.ActionRestartPod:       {changes: restarts, joins: []batchv1alpha1.JobPhase{rs}},
		busv1alpha1.ActionRestartPartition: {changes: restarts, joins: []batchv1alpha1.JobPhase{rs}},
		busv1alpha1.ActionResumeJob:        {changes: []batchv1alpha1.JobPhase{ab, abd}},
		"Foo":                              {},
		"":                                 {},
	}
	for action, tc := range tests {
		for _, phase := range allPhases {
			want := ignores
			switch {
			case slices.Contains(tc.changes, phase):
				want = changesPhase
			case slices.Contains(tc.joins, phase):
				want = marksTarget
			}
			if got := reactionTo(phase, action); got != want {
				t.Errorf("%q in %s: got %d, want %d", action, phase, got, want)
			}
		}
	}
}

func TestPhasesFollowEachOtherAsUsersKnowThem(t *testing.T) {
	for _, from := range allPhases {
		want := slices.Sorted(slices.Values(legalSteps[from]))
		if got := slices.Sorted(slices.Values(phaseExits(from))); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", from, got, want)
		}
	}
	for phase, final := range map[batchv1alpha1.JobPhase]bool{cd: true, td: true, ff: true, abd: false, cc: false, "": false} {
		if isFinal(phase) != final {
			t.Errorf("%q is final: %v", phase, isFinal(phase))
		}
	}
}

func TestATargetIsReadAsItWasWritten(t *testing.T) {
	for _, want := range []target{
		{action: busv1alpha1.ActionRestartTask, task: "worker"},
		{action: busv1alpha1.ActionRestartPod, task: "worker", number: 12},
		{action: busv1alpha1.ActionRestartPartition, task: "a-b", number: 0},
	} {
		if got, ok := readTarget(fmt.Sprintf("%s: Pod j-worker-1 has failed: RestartTask ps: no", want)); !ok || got != want {
			t.Errorf("%v is read as %v, %v", want, got, ok)
		}
	}
}

func TestMessagesOfUsersNameNoTarget(t *testing.T) {
	for _, message := range []string{
		"", "RestartTask worker", "RestartJob: Pod j-a-0 has failed", "Command 1-2: RestartTask worker: why",
		"RestartTask: x", "RestartPod worker: x", "RestartPod worker x: y", "RestartTask a b: x", "AbortJob a: x",
	} {
		if got, ok := readTarget(message); ok {
			t.Errorf("%q names the target %v", message, got)
		}
	}
}

func TestTheCommandOnRecordIsTheOneThatBeginsTheMessage(t *testing.T) {
	for message, want := range map[string]string{
		"Command 12-34: AbortJob: Command c": "12-34",
		"AbortJob: Command 12-34: x":         "",
		"":                                   "",
	} {
		if got := commandOnRecord(batchv1alpha1.JobState{Message: message}); string(got) != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

func TestAPhaseThatIsEnteredAgainMovesToTheEndOfTheConditions(t *testing.T) {
	s := given(t, job(ofTask("a", 1)), nil)
	s.until(rr).issue(busv1alpha1.ActionRestartJob).until(rr)
	seen := map[batchv1alpha1.JobPhase]int{}
	var order []batchv1alpha1.JobPhase
	for _, condition := range s.written.Conditions {
		seen[condition.Status]++
		order = append(order, condition.Status)
	}
	if !slices.Equal(order, []batchv1alpha1.JobPhase{rs, pp, rr}) || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		t.Errorf("conditions: %v", order)
	}
}
