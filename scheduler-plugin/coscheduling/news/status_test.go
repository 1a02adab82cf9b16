// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"testing"
	"time"

	"github.com/lockstep-k8s/lockstep/scheduler-plugin/coscheduling/dialect"
)

// TestWhenAGroupOfAnotherDialectIsWritten: its phase at once, its counters now and then.
func TestWhenAGroupOfAnotherDialectIsWritten(t *testing.T) {
	foreign := func(g *Gang) {
		g.Key.Dialect, g.Group.Key.Dialect = dialect.SchedulerPlugins, dialect.SchedulerPlugins
		g.Group.Status, g.Group.Asked = &dialect.Status{}, g.Group.Spec.Minimum.Members
	}
	runs := &dialect.Status{Phase: dialect.PhaseRunning, Running: 2}
	wrote := func(status *dialect.Status) func(*Gang) {
		return func(g *Gang) {
			g.Record.Status, g.Record.StatusAt = status, start
			g.Group.ResourceVersion, g.Record.StatusVersion = "1", "2"
		}
	}
	shown := func(status *dialect.Status, version string) func(*Gang) {
		return func(g *Gang) { g.Group.Status, g.Group.ResourceVersion = status, version }
	}
	pods := func(census dialect.Census) func(*Gang) { return func(g *Gang) { g.Census = census } }
	tests := map[string]struct {
		change []func(*Gang)
		// at is how long after start it is.
		at        time.Duration
		want      string // the phase that is written, empty for nothing
		wantAgain time.Duration
	}{
		"it has no phase yet":                    {[]func(*Gang){foreign}, 0, dialect.PhasePending, 0},
		"it is somebody else's":                  {[]func(*Gang){foreign, func(g *Gang) { g.Theirs = true }}, 0, "", 0},
		"its phase changes":                      {[]func(*Gang){foreign, wrote(runs), pods(dialect.Census{Exist: 3, Running: 1, Succeeded: 2})}, time.Second, dialect.PhaseFinished, 0},
		"only its counters change":               {[]func(*Gang){foreign, wrote(runs), pods(dialect.Census{Exist: 3, Running: 3})}, time.Second, "", 9 * time.Second},
		"its counters have changed for a while":  {[]func(*Gang){foreign, wrote(runs), pods(dialect.Census{Exist: 3, Running: 3})}, 10 * time.Second, dialect.PhaseRunning, 0},
		"nothing changes":                        {[]func(*Gang){foreign, wrote(runs), pods(dialect.Census{Exist: 2, Running: 2})}, time.Minute, "", 0},
		"the watch shows what was written":       {[]func(*Gang){foreign, wrote(runs), shown(runs, "2"), pods(dialect.Census{Exist: 2, Running: 2})}, time.Minute, "", 0},
		"a program has replaced it without":      {[]func(*Gang){foreign, wrote(runs), shown(&dialect.Status{}, "3"), pods(dialect.Census{Exist: 2, Running: 2})}, time.Second, dialect.PhaseRunning, 0},
		"it is Lockstep's, which has conditions": {nil, 0, "", 0},
		"the group is not there":                 {[]func(*Gang){groupless}, 0, "", 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			g := gangOf(tc.change...)
			got, again := g.Status(start.Add(tc.at), nil)
			phase := ""
			if got != nil {
				phase = got.Phase
			}
			if phase != tc.want || again != tc.wantAgain {
				t.Errorf("the phase %q is written, and it is asked again in %v; want %q, %v", phase, again, tc.want, tc.wantAgain)
			}
		})
	}
}

// TestNewConditionsAreWrittenAtOnce, of dialects that have some.
func TestNewConditionsAreWrittenAtOnce(t *testing.T) {
	for of, want := range map[dialect.Dialect]bool{dialect.Volcano: true, dialect.SchedulerPlugins: false} {
		g := gangOf(func(g *Gang) {
			g.Key.Dialect, g.Group.Key.Dialect, g.Group.Asked = of, of, 2
			g.Group.Status = &dialect.Status{}
			g.Census = dialect.Census{Exist: 3, Placed: 3, Running: 3}
		})
		before := g.Group.NextStatus(*g.Group.Status, dialect.Facts{Pods: dialect.Census{Exist: 3, Placed: 3, Running: 2}})
		g.Record.Status, g.Record.StatusAt, g.Record.StatusVersion, g.Group.ResourceVersion = &before, start, "2", "1"
		status, _ := g.Status(start.Add(time.Second), said("Scheduled"))
		if (status != nil) != want {
			t.Errorf("%s: the status %v is written", of.Kind(), status)
		}
		if want && len(status.Conditions) != 2 {
			t.Errorf("%s: the conditions are %v", of.Kind(), status.Conditions)
		}
	}
}

// TestAGroupOfAnotherDialectIsToldOfOnce: whoever comes after another scheduler sees by the phase
// that the gang was placed, and does not tell it again.
func TestAGroupOfAnotherDialectIsToldOfOnce(t *testing.T) {
	g := gangOf(bound)
	g.Group.Conditions = said("Scheduled")
	g.Group.Conditions[0].Message, g.Group.Conditions[1].Message = "", ""
	if conditions, again := g.News(start, "id"); conditions != nil || again != 0 {
		t.Errorf("it is told again: %v, %v", conditions, again)
	}
	g = gangOf(func(g *Gang) { g.Theirs = true })
	if conditions, again := g.News(start.Add(time.Hour), "id"); conditions != nil || again != 0 {
		t.Errorf("the gang of another scheduler is told of: %v, %v", conditions, again)
	}
}
