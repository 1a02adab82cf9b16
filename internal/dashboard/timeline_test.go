// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	frameworkv1 "github.com/lockstep-k8s/lockstep/apis/framework/v1"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// start is when the tests' Frameworks begin.
var start = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// words are what a screen reader says of the lanes, a line each.
func words(line *timeline) string {
	var out strings.Builder
	for _, l := range line.Lanes {
		out.WriteString(l.Label + ": " + l.Says + "\n")
	}
	return out.String()
}

func TestTheTimelineTellsAttemptsAndTasks(t *testing.T) {
	tree := &view.Tree{
		Row: view.Row{Namespace: "a", Name: "training", State: view.StateRunning},
		History: []view.PastAttempt{
			{ID: 0, Started: at(0), Ran: at(10), Ended: at(40), State: view.StateFailed, End: view.End{Code: 7, Phrase: "ContainerFailed"}},
			{ID: 1, Started: at(60), Ended: at(70), State: view.StateFailed, End: view.End{Code: -310, Disruption: "Preempted"}},
		},
		Attempt: &view.Attempt{ID: 2, Started: at(70), State: view.StateRunning, Roles: []view.Role{{Name: "worker", Running: 1, Total: 2, Tasks: []view.Tasks{
			{Indexes: "0", Count: 1, State: view.StateRunning, Started: at(70), Ran: at(80), PodName: "training-worker-0", Retries: 2},
			{Indexes: "1", Count: 1, State: view.StatePreparing, Started: at(70), Reason: "ImagePullBackOff", PodName: "training-worker-1"},
		}}}},
	}
	line := timelineOf(tree, at(100))
	want := `attempt 0: waited for 10s, ran for 30s, Failed ContainerFailed, waits for the next attempt for 20s
attempt 1: waited for 10s, Failed Preempted
attempt 2: waited for 10s, running for 20s
worker: 
0: waited for 10s, running for 20s, Running · 2 retries
1: waits ImagePullBackOff for 30s, Preparing · ImagePullBackOff
`
	if diff := cmp.Diff(want, words(line)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if p := line.Lanes[0].Pieces[1]; p.X != 10 || p.Width != 30 || p.Class != "bad" {
		t.Errorf("the first attempt ran at %+v", p)
	}
	if link := line.Lanes[4].Link; link != "/logs/a/training-worker-0" {
		t.Errorf("the link of a task is %s", link)
	}
}

// TestWhatWasTooShortToBeSeenRunningIsNotDrawnAsWaiting: a task of a second has an exit code and no time at which it ran.
func TestWhatWasTooShortToBeSeenRunningIsNotDrawnAsWaiting(t *testing.T) {
	success, lost := frameworkv1.CompletionCode(0), frameworkv1.CompletionCode(-101)
	tree := &view.Tree{
		Row:     view.Row{State: view.StateSucceeded},
		History: []view.PastAttempt{{ID: 0, Started: at(0), Ended: at(2), State: view.StateSucceeded}},
		Attempt: &view.Attempt{ID: 0, Started: at(0), Since: at(2), State: view.StateSucceeded, Roles: []view.Role{{Name: "worker", Tasks: []view.Tasks{
			{Indexes: "0", Count: 1, State: view.StateSucceeded, Started: at(0), Ended: at(2), Code: &success},
			{Indexes: "1", Count: 1, State: view.StateFailed, Started: at(0), Ended: at(2), Code: &lost},
		}}}},
	}
	line := timelineOf(tree, at(2))
	if got := line.Lanes[0].Pieces[0].Class; got != "good" {
		t.Errorf("the attempt is drawn as %s", got)
	}
	if got := line.Lanes[2].Pieces[0].Class; got != "good" {
		t.Errorf("a task that succeeded is drawn as %s", got)
	}
	if got := line.Lanes[3].Pieces[0].Class; got != "waits" {
		t.Errorf("a task whose Pod went before it ran is drawn as %s", got)
	}
}

func TestATimelineOfWhateverTimesStaysInItsPicture(t *testing.T) {
	for name, tree := range map[string]*view.Tree{
		"a clock that runs back": {Row: view.Row{State: view.StateRunning}, Attempt: &view.Attempt{ID: 1, Started: at(100)},
			History: []view.PastAttempt{{Started: at(200), Ran: at(150), Ended: at(120), State: view.StateFailed}}},
		"no time at all": {Row: view.Row{State: view.StateSucceeded}, Attempt: &view.Attempt{Started: at(0), Since: at(0)}},
		"thirty years":   {Row: view.Row{State: view.StateRunning}, Attempt: &view.Attempt{Started: at(-30 * 365 * 86400)}},
	} {
		line := timelineOf(tree, at(0))
		if len(line.Ticks) > maxTicks+1 {
			t.Errorf("%s: %d ticks", name, len(line.Ticks))
		}
		for _, l := range line.Lanes {
			for _, p := range l.Pieces {
				if p.X < 0 || p.Width < minWidth || p.X+p.Width > 100.001 {
					t.Errorf("%s: a piece from %s, %s wide", name, p.X, p.Width)
				}
			}
		}
	}
}
