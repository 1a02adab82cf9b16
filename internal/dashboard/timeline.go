// Copyright The Lockstep Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/lockstep-k8s/lockstep/internal/text"
	"github.com/lockstep-k8s/lockstep/internal/times"
	"github.com/lockstep-k8s/lockstep/internal/view"
)

// timeline is a Gantt chart: attempts, and the tasks of the last one, over the same time.
type timeline struct {
	Ticks []tick
	Lanes []lane
	// Hidden is how many roles are shown without their tasks.
	Hidden int
	// From and To are the bounds.
	From, To time.Time
}

// tick is a time below the lanes.
type tick struct {
	// X is the position, in percent of the width.
	X percent
	// Label is the time since the beginning.
	Label string
}

// lane is a line of the chart.
type lane struct {
	// Kind is attempt, role or tasks.
	Kind string
	// Label is the name, and Note is the text beside the name.
	Label, Note string
	// Link leads to more; empty for none.
	Link   string
	Pieces []piece
	// Says is what the pieces show, in words.
	Says string
}

// piece is a part of a lane.
type piece struct {
	X, Width percent
	// Class is waits, delays, or the outcome: see tone; lost for what was disrupted.
	Class string
	// Title says what the piece is, and how long.
	Title string
}

// percent of a width.
type percent float64

func (p percent) String() string { return strconv.FormatFloat(float64(p), 'f', 3, 64) + "%" }

// maxTaskLanes is how many lanes tasks have at most.
const maxTaskLanes = 200

// minWidth is the least width of a piece, so that short pieces remain visible.
const minWidth percent = 0.25

// scale makes percents of times.
type scale struct{ from, to time.Time }

func (s scale) at(t time.Time) percent {
	all := s.to.Sub(s.from)
	if all <= 0 {
		return 0
	}
	return min(100, max(0, percent(100*float64(t.Sub(s.from))/float64(all))))
}

// piece is one from a time to another; `what` describes the piece.
func (s scale) piece(from, to time.Time, class, what string) piece {
	x := s.at(from)
	width := max(minWidth, s.at(to)-x)
	return piece{X: min(x, 100-width), Width: width, Class: class, Title: what + " for " + span(from, to)}
}

// timelineOf returns the chart of a Framework. Nil before the first attempt.
func timelineOf(tree *view.Tree, now time.Time) *timeline {
	attempt := tree.Attempt
	if attempt == nil || attempt.Started.IsZero() {
		return nil
	}
	s := scale{attempt.Started, now}
	if view.Final(tree.State) && !attempt.Since.IsZero() {
		s.to = attempt.Since
	}
	for i := range tree.History {
		s.from = times.Sooner(s.from, tree.History[i].Started)
	}
	// Times have the precision of a second.
	s.to = times.Later(s.to, s.from.Add(time.Second))
	line := &timeline{Ticks: s.ticks(), From: s.from, To: s.to}
	known := false
	for i := range tree.History {
		past := &tree.History[i]
		l := s.past(past)
		known = known || past.ID == attempt.ID
		next := attempt.Started
		if i+1 < len(tree.History) {
			next = tree.History[i+1].Started
		}
		if past.ID == attempt.ID {
			next = s.to
		}
		if past.Ended.Before(next) && !past.Ended.IsZero() && !(past.ID == attempt.ID && view.Final(tree.State)) {
			l.add(s.piece(past.Ended, next, "delays", "waits for the next attempt"))
		}
		line.Lanes = append(line.Lanes, *l)
	}
	if !known {
		line.Lanes = append(line.Lanes, *s.attempt(tree))
	}
	shown := 0
	for _, role := range attempt.Roles {
		tasksLink := path("frameworks", tree.Namespace, tree.Name, "tasks") + "?role=" + url.QueryEscape(role.Name)
		line.Lanes = append(line.Lanes, lane{Kind: "role", Label: role.Name, Note: fmt.Sprintf("%d/%d running", role.Running, role.Total), Link: tasksLink})
		if shown += len(role.Tasks); shown > maxTaskLanes {
			line.Hidden++
			continue
		}
		for _, tasks := range role.Tasks {
			l := s.tasks(tasks)
			if tasks.PodName != "" {
				l.Link = path("logs", tree.Namespace, tasks.PodName)
			} else {
				l.Link = tasksLink + "&state=" + url.QueryEscape(tasks.State)
			}
			line.Lanes = append(line.Lanes, *l)
		}
	}
	return line
}

// add adds a piece, and a description.
func (l *lane) add(p piece) {
	l.Pieces = append(l.Pieces, p)
	l.say(p.Title)
}

// say adds words, such as the outcome.
func (l *lane) say(what string) { l.Says = strings.TrimPrefix(l.Says+", "+what, ", ") }

// past returns the lane of an attempt that is over.
func (s scale) past(past *view.PastAttempt) *lane {
	d := &lane{Kind: "attempt", Label: "attempt " + strconv.Itoa(int(past.ID))}
	why := cmp.Or(past.End.Disruption, past.End.Phrase)
	d.Note = strings.TrimSpace(past.State + " " + why)
	class := tone(past.State)
	if past.End.Disruption != "" && past.State != view.StateSucceeded {
		class = "lost"
	}
	switch {
	case past.Ran.IsZero() && past.End.Code >= 0:
		// The task has an exit code, so the container ran, for too short a time to be seen.
		d.add(s.piece(past.Started, past.Ended, class, "ran"))
	case past.Ran.IsZero():
		d.add(s.piece(past.Started, past.Ended, "waits", "waited"))
	default:
		d.add(s.piece(past.Started, past.Ran, "waits", "waited"))
		d.add(s.piece(past.Ran, past.Ended, class, "ran"))
	}
	d.say(d.Note)
	return d
}

// attempt returns the lane of the current attempt. The attempt waits until its first task runs.
func (s scale) attempt(tree *view.Tree) *lane {
	attempt := tree.Attempt
	d := &lane{Kind: "attempt", Label: "attempt " + strconv.Itoa(int(attempt.ID)), Note: tree.State}
	var ran time.Time
	for _, role := range attempt.Roles {
		for _, tasks := range role.Tasks {
			ran = times.Sooner(ran, tasks.Ran)
		}
	}
	if end := attempt.End; ran.IsZero() && end != nil && end.Code >= 0 {
		d.add(s.piece(attempt.Started, s.to, tone(tree.State), "ran"))
		return d
	}
	waits := "waits"
	if tree.Waiting != "" {
		waits = "waits for " + clean(tree.Waiting)
	}
	if ran.IsZero() {
		d.add(s.piece(attempt.Started, s.to, "waits", waits))
		return d
	}
	d.add(s.piece(attempt.Started, ran, "waits", "waited"))
	d.add(s.piece(ran, s.to, tone(tree.State), strings.ToLower(tree.State)))
	return d
}

// tasks returns the lane of a row of tasks.
func (s scale) tasks(tasks view.Tasks) *lane {
	d := &lane{Kind: "tasks", Label: tasks.Indexes}
	if tasks.Count > 1 {
		d.Label += fmt.Sprintf(" (%d tasks)", tasks.Count)
	}
	state := cmp.Or(tasks.State, "others")
	notes := []string{state}
	if tasks.Code != nil && *tasks.Code != 0 {
		notes = append(notes, fmt.Sprintf("code %d", *tasks.Code))
	}
	if tasks.Reason != "" && tasks.Reason != "Succeeded" {
		notes = append(notes, clean(tasks.Reason))
	}
	if tasks.Retries > 0 {
		notes = append(notes, fmt.Sprintf("%d %s", tasks.Retries, text.Form(int(tasks.Retries), "retry", "retries")))
	}
	d.Note = strings.Join(notes, " · ")
	if tasks.Started.IsZero() {
		d.Says = d.Note
		return d
	}
	end := s.to
	if !tasks.Ended.IsZero() {
		end = tasks.Ended
	}
	class := tone(tasks.State)
	switch tasks.Reason {
	case "Preempted", "NodeLost", "Evicted":
		if class == "bad" || class == "waits" {
			class = "lost"
		}
	}
	waited := "waited"
	switch {
	case tasks.Ran.IsZero() && !tasks.Ended.IsZero() && tasks.Code != nil && *tasks.Code >= 0:
		d.add(s.piece(tasks.Started, end, class, "ran"))
	case tasks.Ran.IsZero():
		if tasks.Ended.IsZero() {
			waited = strings.TrimSpace("waits " + clean(tasks.Reason))
		}
		d.add(s.piece(tasks.Started, end, "waits", waited))
	default:
		d.add(s.piece(tasks.Started, tasks.Ran, "waits", waited))
		d.add(s.piece(tasks.Ran, end, class, strings.ToLower(state)))
	}
	d.say(d.Note)
	return d
}

// steps are the distances of ticks.
var steps = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// maxTicks is how many ticks there are at most.
const maxTicks = 8

// ticks returns the times below the lanes.
func (s scale) ticks() []tick {
	all := s.to.Sub(s.from)
	step := steps[len(steps)-1]
	for _, d := range steps {
		if all/d <= maxTicks {
			step = d
			break
		}
	}
	for all/step > maxTicks {
		step *= 2
	}
	var ticks []tick
	for at := time.Duration(0); at <= all; at += step {
		label := "0"
		if at > 0 {
			label = duration.HumanDuration(at)
		}
		ticks = append(ticks, tick{s.at(s.from.Add(at)), label})
	}
	return ticks
}
