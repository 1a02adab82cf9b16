// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package news

import (
	"testing"
	"time"

	schedulingv1alpha1 "github.com/lockstep-k8s/lockstep/apis/scheduling/v1alpha1"
	"github.com/lockstep-k8s/lockstep/podgroup"
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
			g.Group.ResourceVersion, g.Record.Version = "1", "2"
		}
	}
	shown := func(status *dialect.Status, version string) func(*Gang) {
		return func(g *Gang) { g.Group.Status, g.Group.ResourceVersion = status, version }
	}
	seenNow := func(g *Gang) { g.Seen = start }
	allWait := func(g *Gang) { g.Waiting, g.Census = podgroup.Tally{Total: 2}, dialect.Census{Exist: 2} }
	pods := func(census dialect.Census) func(*Gang) { return func(g *Gang) { g.Census = census } }
	tests := map[string]struct {
		change []func(*Gang)
		// at is how long after start it is.
		at        time.Duration
		want      string // the phase that is written, empty for nothing
		wantAgain time.Duration
	}{
		"it has no phase yet":                    {[]func(*Gang){foreign}, 0, dialect.PhasePending, 0},
		"it waits for its first cycle":           {[]func(*Gang){foreign, seenNow, allWait}, time.Second, "", 4 * time.Second},
		"it waits long for its first cycle":      {[]func(*Gang){foreign, seenNow, allWait}, 5 * time.Second, dialect.PhaseScheduling, 0},
		"it has had its first cycle in vain":     {[]func(*Gang){foreign, seenNow, allWait, refused}, time.Second, dialect.PhaseScheduling, 0},
		"it has failed before a second cycle":    {[]func(*Gang){foreign, seenNow, allWait, wrote(&dialect.Status{Phase: dialect.PhaseScheduling}), pods(dialect.Census{Exist: 3, Failed: 1, Running: 1})}, time.Second, dialect.PhaseFailed, 0},
		"it is new, and its Pods are to come":    {[]func(*Gang){foreign, seenNow}, time.Second, dialect.PhasePending, 0},
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
			got, again := StatusOf(&g, start.Add(tc.at), nil)
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
		g.Record.Status, g.Record.StatusAt, g.Record.Version, g.Group.ResourceVersion = &before, start, "2", "1"
		status, _ := StatusOf(&g, start.Add(time.Second), said("Scheduled"))
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

// TestAGroupOfVolcanosIsUnknownByWhatIsFoundNow, and not by what its conditions say of a while ago: a policy of a
// Volcano Job begins a job anew, or ends it, that is Unknown. Nor does it become so a second time, because a scheduler
// that takes over has not planned it yet.
func TestAGroupOfVolcanosIsUnknownByWhatIsFoundNow(t *testing.T) {
	half := func(g *Gang) {
		g.Placed, g.Bound, g.Waiting = podgroup.Tally{Total: 1}, podgroup.Tally{Total: 1}, podgroup.Tally{Total: 1}
	}
	lackedTasks := func(g *Gang) { g.Group.Conditions = said(schedulingv1alpha1.ReasonNotEnoughTasks) }
	saying := func(phase string) func(*Gang) { return func(g *Gang) { g.Group.Status.Phase = phase } }
	for name, tc := range map[string]struct {
		change []func(*Gang)
		want   string // empty if nothing is written
	}{
		"the rest of it is being bound":                        {[]func(*Gang){lackedTasks, half, func(g *Gang) { g.Placed.Total, g.Waiting.Total = 2, 0 }}, ""},
		"a scheduler takes over that finds it bound in part":   {[]func(*Gang){lackedTasks, half}, ""},
		"the same, of one that has lost members before":        {[]func(*Gang){lostMember, half}, ""},
		"the rest of it finds no place":                        {[]func(*Gang){lackedTasks, half, refused}, dialect.PhaseUnknown},
		"the rest of it can't be bound":                        {[]func(*Gang){lackedTasks, half, unbound}, dialect.PhaseUnknown},
		"it has lost a member, and was Unknown before":         {[]func(*Gang){lostMember, half, saying(dialect.PhaseUnknown)}, ""},
		"it was Unknown, and what waited is gone":              {[]func(*Gang){lostMember, half, nobody, saying(dialect.PhaseUnknown)}, ""},
		"it is so young that its members may be still to come": {[]func(*Gang){lackedTasks, half, nobody, func(g *Gang) { g.Group.Created = start }}, ""},
		"it is too old for that, and its minimum is a new one": {[]func(*Gang){wasBound, half, func(g *Gang) { g.Group.Spec.Minimum.Members = 3 }}, dialect.PhaseUnknown},
		"it was Unknown, and is placed as a whole":             {[]func(*Gang){lostMember, bound, saying(dialect.PhaseUnknown)}, dialect.PhaseRunning},
	} {
		t.Run(name, func(t *testing.T) {
			g := gangOf(append([]func(*Gang){func(g *Gang) {
				g.Key.Dialect, g.Group.Key.Dialect, g.Group.Asked = dialect.Volcano, dialect.Volcano, 2
				g.Group.Status = &dialect.Status{Phase: dialect.PhaseInqueue}
			}}, tc.change...)...)
			g.Group.Status.Conditions, g.Group.Status.Running = g.Group.Conditions, g.Bound.Total
			g.Census = dialect.Census{Exist: 2, Placed: g.Bound.Total, Running: g.Bound.Total}
			now := start.Add(time.Second)
			conditions, _ := g.News(now, "id")
			got := ""
			if status, _ := StatusOf(&g, now, conditions); status != nil {
				got = status.Phase
			}
			if got != tc.want {
				t.Errorf("the phase %q is written, want %q", got, tc.want)
			}
		})
	}
}
